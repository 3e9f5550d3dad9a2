output "ingress_class" {
  description = "Class of ingresses that the ingress controller serves; null without it."
  value       = var.enable_ingress ? "traefik" : null
  depends_on  = [terraform_data.release]
}

output "namespaces" {
  description = "Namespaces that were made, sorted."
  value       = sort([for namespace in terraform_data.namespace : namespace.input.name])
}

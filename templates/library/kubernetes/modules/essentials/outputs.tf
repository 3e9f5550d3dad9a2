output "ingress_class" {
  description = "Class of ingresses that the ingress controller serves; null without it."
  value       = var.enable_ingress ? "traefik" : null
  depends_on  = [helm_release.ingress]
}

output "namespaces" {
  description = "Namespaces that were made, sorted."
  value       = sort([for namespace in kubernetes_namespace_v1.this : namespace.metadata[0].name])
}

locals {
  endpoint = "https://${var.name}.${var.region}.invalid:6443"
  token    = terraform_data.control_plane[0].id
}

output "cluster_name" {
  description = "Name of the cluster."
  value       = var.name
}

output "cluster_version" {
  description = "Minor version of Kubernetes that the control plane runs."
  value       = var.kubernetes_version
}

output "endpoint" {
  description = "URL of the API server. Nobody is there."
  value       = local.endpoint

  # Who has the endpoint wants to run pods.
  depends_on = [terraform_data.node]
}

output "ca_certificate" {
  description = "Certificate of the authority that signed the API server's, in PEM; empty, as there is none."
  value       = ""
  sensitive   = true
}

output "token" {
  description = "Token for the API server; null where exec makes one."
  value       = local.token
  sensitive   = true
}

output "exec" {
  description = "Program that makes a token for the API server: api_version, command and args; null where token is one. It must be installed where the engine runs."
  value       = null
}

output "kubeconfig" {
  description = "kubeconfig of the cluster."
  sensitive   = true
  value = yamlencode({
    apiVersion      = "v1"
    kind            = "Config"
    current-context = var.name
    clusters        = [{ name = var.name, cluster = { server = local.endpoint } }]
    contexts        = [{ name = var.name, context = { cluster = var.name, user = var.name } }]
    users           = [{ name = var.name, user = { token = local.token } }]
  })
}

output "node_count" {
  description = "Nodes of all pools; of autoscaled ones the fewest. How many there are right now is the autoscaler's business."
  value       = sum([for pool in local.node_pools : pool.count != null ? pool.count : pool.min_count])
}

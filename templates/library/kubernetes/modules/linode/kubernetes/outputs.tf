locals {
  kubeconfig = base64decode(linode_lke_cluster.this.kubeconfig)
  config     = yamldecode(local.kubeconfig)
}

output "cluster_name" {
  description = "Name of the cluster."
  value       = linode_lke_cluster.this.label
}

output "cluster_version" {
  description = "Minor version of Kubernetes that the control plane runs."
  value       = linode_lke_cluster.this.k8s_version
}

output "endpoint" {
  description = "URL of the API server."
  value       = linode_lke_cluster.this.api_endpoints[0]

  # Who has the endpoint wants to run pods.
  depends_on = [linode_lke_node_pool.this]
}

output "ca_certificate" {
  description = "Certificate of the authority that signed the API server's, in PEM."
  value       = base64decode(local.config.clusters[0].cluster["certificate-authority-data"])
  sensitive   = true # the provider takes all of the credentials for secret
}

output "token" {
  description = "Token for the API server; null where exec makes one."
  value       = local.config.users[0].user.token
  sensitive   = true
}

output "exec" {
  description = "Program that makes a token for the API server: api_version, command and args; null where token is one. It must be installed where the engine runs."
  value       = null
}

output "kubeconfig" {
  description = "kubeconfig of the cluster."
  value       = local.kubeconfig
  sensitive   = true
}

output "node_count" {
  description = "Nodes of all pools; of autoscaled ones the fewest. How many there are right now is the autoscaler's business."
  value       = sum([for pool in local.node_pools : pool.count != null ? pool.count : pool.min_count])
}

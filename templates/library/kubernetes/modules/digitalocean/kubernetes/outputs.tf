output "cluster_name" {
  description = "Name of the cluster."
  value       = digitalocean_kubernetes_cluster.this.name
}

output "cluster_version" {
  description = "Minor version of Kubernetes that the control plane runs."
  value       = regex("^[0-9]+[.][0-9]+", digitalocean_kubernetes_cluster.this.version)
}

output "endpoint" {
  description = "URL of the API server."
  value       = digitalocean_kubernetes_cluster.this.endpoint

  # Who has the endpoint wants to run pods.
  depends_on = [digitalocean_kubernetes_node_pool.this]
}

output "ca_certificate" {
  description = "Certificate of the authority that signed the API server's, in PEM."
  value       = base64decode(digitalocean_kubernetes_cluster.this.kube_config[0].cluster_ca_certificate)
  sensitive   = true # the provider takes all of the credentials for secret
}

output "token" {
  description = "Token for the API server; null where exec makes one. This cloud's lives for a week, and each refresh after that has a new one."
  value       = digitalocean_kubernetes_cluster.this.kube_config[0].token
  sensitive   = true
}

output "exec" {
  description = "Program that makes a token for the API server: api_version, command and args; null where token is one. It must be installed where the engine runs."
  value       = null
}

output "kubeconfig" {
  description = "kubeconfig of the cluster."
  value       = digitalocean_kubernetes_cluster.this.kube_config[0].raw_config
  sensitive   = true
}

output "node_count" {
  description = "Nodes of all pools; of autoscaled ones the fewest. How many there are right now is the autoscaler's business."
  value       = sum([for pool in local.node_pools : pool.count != null ? pool.count : pool.min_count])
}

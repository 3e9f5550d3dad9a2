output "cluster_name" {
  description = "Name of the cluster."
  value       = azurerm_kubernetes_cluster.this.name
}

output "cluster_version" {
  description = "Minor version of Kubernetes that the control plane runs."
  value       = regex("^[0-9]+[.][0-9]+", azurerm_kubernetes_cluster.this.current_kubernetes_version)
}

output "endpoint" {
  description = "URL of the API server."
  value       = nonsensitive(azurerm_kubernetes_cluster.this.kube_config[0].host) # all of kube_config is sensitive to the provider

  # Who has the endpoint wants to run pods.
  depends_on = [azurerm_kubernetes_cluster_node_pool.this]
}

output "ca_certificate" {
  description = "Certificate of the authority that signed the API server's, in PEM."
  value       = base64decode(azurerm_kubernetes_cluster.this.kube_config[0].cluster_ca_certificate)
  sensitive   = true # the provider takes all of the credentials for secret
}

output "token" {
  description = "Token for the API server; null where exec makes one."
  value       = azurerm_kubernetes_cluster.this.kube_config[0].password
  sensitive   = true
}

output "exec" {
  description = "Program that makes a token for the API server: api_version, command and args; null where token is one. It must be installed where the engine runs."
  value       = null
}

output "kubeconfig" {
  description = "kubeconfig of the cluster."
  value       = azurerm_kubernetes_cluster.this.kube_config_raw
  sensitive   = true
}

output "node_count" {
  description = "Nodes of all pools; of autoscaled ones the fewest. How many there are right now is the autoscaler's business."
  value       = sum([for pool in local.node_pools : pool.count != null ? pool.count : pool.min_count])
}

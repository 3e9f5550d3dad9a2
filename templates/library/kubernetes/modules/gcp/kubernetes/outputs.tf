locals {
  endpoint = "https://${google_container_cluster.this.endpoint}"

  # A token of this cloud lives for an hour, which a plan may wait longer than:
  # one is made when it is needed.
  exec = {
    api_version = "client.authentication.k8s.io/v1beta1"
    command     = "gke-gcloud-auth-plugin"
    args        = ["--use_application_default_credentials"]
  }
}

output "cluster_name" {
  description = "Name of the cluster."
  value       = google_container_cluster.this.name
}

output "cluster_version" {
  description = "Minor version of Kubernetes that the control plane runs."
  value       = regex("^[0-9]+[.][0-9]+", google_container_cluster.this.master_version)
}

output "endpoint" {
  description = "URL of the API server."
  value       = local.endpoint

  # Who has the endpoint wants to run pods.
  depends_on = [google_container_node_pool.this]
}

output "ca_certificate" {
  description = "Certificate of the authority that signed the API server's, in PEM."
  value       = base64decode(google_container_cluster.this.master_auth[0].cluster_ca_certificate)
  sensitive   = true
}

output "token" {
  description = "Token for the API server; null where exec makes one."
  value       = null
  sensitive   = true
}

output "exec" {
  description = "Program that makes a token for the API server: api_version, command and args; null where token is one. It must be installed where the engine runs."
  value       = local.exec
}

output "kubeconfig" {
  description = "kubeconfig of the cluster."
  sensitive   = true
  value = yamlencode({
    apiVersion      = "v1"
    kind            = "Config"
    current-context = var.name
    clusters = [{
      name = var.name
      cluster = {
        server                     = local.endpoint
        certificate-authority-data = google_container_cluster.this.master_auth[0].cluster_ca_certificate
      }
    }]
    contexts = [{ name = var.name, context = { cluster = var.name, user = var.name } }]
    users = [{
      name = var.name
      user = {
        exec = {
          apiVersion         = local.exec.api_version
          command            = local.exec.command
          args               = local.exec.args
          interactiveMode    = "Never"
          provideClusterInfo = true
        }
      }
    }]
  })
}

output "node_count" {
  description = "Nodes of all pools; of autoscaled ones the fewest. How many there are right now is the autoscaler's business."
  value = sum([
    for name, pool in local.pools : pool.count != null ? local.per_zone[name] * length(pool.zones) : pool.min_count
  ])
}

locals {
  # A token of EKS lives for a quarter of an hour, which a plan may wait longer
  # than: one is made when it is needed.
  exec = {
    api_version = "client.authentication.k8s.io/v1beta1"
    command     = "aws"
    args        = ["eks", "get-token", "--cluster-name", var.name, "--region", var.region, "--output", "json"]
  }
}

output "cluster_name" {
  description = "Name of the cluster."
  value       = aws_eks_cluster.this.name
}

output "cluster_version" {
  description = "Minor version of Kubernetes that the control plane runs."
  value       = aws_eks_cluster.this.version
}

output "endpoint" {
  description = "URL of the API server."
  value       = aws_eks_cluster.this.endpoint

  # Who has the endpoint wants to run pods.
  depends_on = [aws_eks_node_group.fixed, aws_eks_node_group.autoscaled, aws_eks_addon.workload]
}

output "ca_certificate" {
  description = "Certificate of the authority that signed the API server's, in PEM."
  value       = base64decode(aws_eks_cluster.this.certificate_authority[0].data)
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
        server                     = aws_eks_cluster.this.endpoint
        certificate-authority-data = aws_eks_cluster.this.certificate_authority[0].data
      }
    }]
    contexts = [{ name = var.name, context = { cluster = var.name, user = var.name } }]
    users = [{
      name = var.name
      user = {
        exec = {
          apiVersion      = local.exec.api_version
          command         = local.exec.command
          args            = local.exec.args
          interactiveMode = "Never"
        }
      }
    }]
  })
}

output "node_count" {
  description = "Nodes of all pools; of autoscaled ones the fewest. How many there are right now is the autoscaler's business."
  value       = sum([for pool in local.node_pools : pool.count != null ? pool.count : pool.min_count])
}

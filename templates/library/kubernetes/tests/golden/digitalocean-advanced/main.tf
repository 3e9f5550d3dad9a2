variable "allowed_cidrs" {
  description = "Address ranges from which the API server is reached."
  type        = list(string)
  default     = ["0.0.0.0/0"]
}

variable "cidr" {
  description = "Address range of the cluster's network, a /16 to /20, for good. Those of an account on DigitalOcean must not overlap."
  type        = string
  default     = "10.0.0.0/16"
}

variable "enable_autoscaler" {
  description = "Install the cluster autoscaler. Only aws needs it, and requires a value for pools with a min_count: false if you bring your own. The other clouds have one."
  type        = bool
  default     = null
}

variable "enable_cert_manager" {
  description = "Install cert-manager. Switching it off deletes its namespace, with the keys of issuers and authorities in it."
  type        = bool
  default     = false
}

variable "enable_ingress" {
  description = "Install Traefik as the ingress controller, with a load balancer of the cloud."
  type        = bool
  default     = false
}

variable "enable_monitoring" {
  description = "Install Prometheus, Alertmanager and Grafana. Switching it off deletes their namespace, with all metrics."
  type        = bool
  default     = false
}

variable "high_availability" {
  description = "Redundant zones, gateways and control planes, where the cloud has them."
  type        = bool
  default     = false
}

variable "instance_type" {
  description = "Machine of the nodes, as the cloud names it. Pools may have others."
  type        = string
  default     = null
}

variable "kubernetes_version" {
  description = "Minor version of Kubernetes; left out, it moves with the version of the template. It goes up one at a time, and never down. Patch releases are the cloud's business."
  type        = string
  default     = "1.35"
}

variable "monitoring_disk_gb" {
  description = "Size of the volume for metrics, in GB. It stays as it was when monitoring was installed."
  type        = number
  default     = 50
}

variable "monitoring_retention_days" {
  description = "Days for which metrics are kept."
  type        = number
  default     = 15
}

variable "node_count" {
  description = "How many nodes there are; 3 if neither this nor node_pools is set."
  type        = number
  default     = null
}

variable "node_pools" {
  description = "Pools of nodes, instead of a node_count. Each has a count, or a min_count and a max_count between which it follows the load. The first one runs the system's pods, stays the first, and has no taints."
  type        = any
  default     = null
}

variable "private_endpoint" {
  description = "The API server is reached from the network only. DigitalOcean and Linode cannot; on Azure it is for good."
  type        = bool
  default     = false
}

variable "tags" {
  description = "Tags of everything that takes tags."
  type        = map(string)
  default     = {}
}

module "network" {
  source            = "../template/modules/digitalocean/network"
  cidr              = var.cidr
  high_availability = var.high_availability
  name              = local.cluster.name
  region            = local.cluster.region
  tags              = var.tags
}

module "kubernetes" {
  source             = "../template/modules/digitalocean/kubernetes"
  allowed_cidrs      = var.allowed_cidrs
  high_availability  = var.high_availability
  instance_type      = var.instance_type
  kubernetes_version = var.kubernetes_version
  name               = local.cluster.name
  network_id         = module.network.network_id
  node_count         = var.node_count
  node_pools         = var.node_pools
  private_endpoint   = var.private_endpoint
  region             = local.cluster.region
  subnet_ids         = module.network.subnet_ids
  tags               = var.tags
}

module "essentials" {
  source                    = "../template/modules/essentials"
  enable_autoscaler         = var.enable_autoscaler
  enable_cert_manager       = var.enable_cert_manager
  enable_ingress            = var.enable_ingress
  enable_monitoring         = var.enable_monitoring
  high_availability         = var.high_availability
  monitoring_disk_gb        = var.monitoring_disk_gb
  monitoring_retention_days = var.monitoring_retention_days
  name                      = local.cluster.name
  region                    = local.cluster.region
  depends_on                = [module.kubernetes]
}

output "cluster_name" {
  value       = module.kubernetes.cluster_name
  description = "Name of the cluster, as the cloud has it."
}

output "cluster_version" {
  value       = module.kubernetes.cluster_version
  description = "Minor version of Kubernetes that the control plane runs."
}

output "endpoint" {
  value       = module.kubernetes.endpoint
  description = "URL of the API server."
}

output "ingress_class" {
  value       = module.essentials.ingress_class
  description = "Class of ingresses that the ingress controller serves."
}

output "kubeconfig" {
  value       = module.kubernetes.kubeconfig
  description = "kubeconfig of the cluster."
  sensitive   = true
}

output "network_id" {
  value       = module.network.network_id
  description = "ID of the network."
}

output "node_count" {
  value       = module.kubernetes.node_count
  description = "Nodes of all pools; of autoscaled ones the fewest."
}

output "subnet_ids" {
  value       = module.network.subnet_ids
  description = "IDs of the subnets that nodes are in."
}

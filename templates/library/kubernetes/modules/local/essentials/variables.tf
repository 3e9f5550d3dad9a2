variable "name" {
  description = "Name of the cluster."
  type        = string
}

variable "region" {
  description = "Region of the cluster."
  type        = string
}

variable "high_availability" {
  description = "Two replicas or more of everything that requests wait for, on nodes of their own."
  type        = bool
  default     = false
}

variable "enable_ingress" {
  description = "Install Traefik as the ingress controller, with a load balancer of the cloud."
  type        = bool
  default     = false
  nullable    = false
}

variable "enable_cert_manager" {
  description = "Install cert-manager. Issuers are the users' to make."
  type        = bool
  default     = false
  nullable    = false
}

variable "enable_monitoring" {
  description = "Install Prometheus, Alertmanager and Grafana (kube-prometheus-stack)."
  type        = bool
  default     = false
  nullable    = false
}

variable "enable_autoscaler" {
  description = "Install the cluster autoscaler, where the cloud brings none: on aws."
  type        = bool
  default     = false
  nullable    = false
}

variable "ingress_annotations" {
  description = "Annotations of the ingress controller's service, by which clouds take wishes for its load balancer."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "monitoring_retention_days" {
  description = "Days for which metrics are kept."
  type        = number
  default     = 15

  validation {
    condition     = var.monitoring_retention_days >= 1 && floor(var.monitoring_retention_days) == var.monitoring_retention_days
    error_message = "Metrics must be kept for a whole number of days, 1 or more."
  }
}

variable "monitoring_disk_gb" {
  description = "Size of the volume for metrics, in GB. Prometheus drops the oldest ones before it is full."
  type        = number
  default     = 50

  validation {
    condition     = var.monitoring_disk_gb >= 10 && floor(var.monitoring_disk_gb) == var.monitoring_disk_gb
    error_message = "The volume for metrics must have a whole number of GB, 10 or more."
  }
}

variable "chart_versions" {
  description = "Versions of the Helm charts. They move with the version of the template."
  type = object({
    cert_manager          = optional(string, "v1.20.3")
    cluster_autoscaler    = optional(string, "9.59.0")
    kube_prometheus_stack = optional(string, "79.12.0")
    traefik               = optional(string, "39.0.9")
  })
  default  = {}
  nullable = false
}

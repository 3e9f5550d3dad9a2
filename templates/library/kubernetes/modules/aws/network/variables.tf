variable "name" {
  description = "Name of the cluster. What the network consists of is named after it."
  type        = string

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$", var.name))
    error_message = "The name must have 1 to 40 lower-case letters, digits and dashes, begin with a letter and not end with a dash."
  }
}

variable "region" {
  description = "Region of the network, such as eu-west-1. It must be the region that the aws provider is configured for."
  type        = string
}

variable "cidr" {
  description = "Address range of the network, a /16 to /20: three quarters of it are private subnets for nodes and pods, the rest public ones for load balancers."
  type        = string
  default     = "10.0.0.0/16"

  validation {
    condition     = can(cidrnetmask(var.cidr)) && can(regex("/(1[6-9]|20)$", var.cidr))
    error_message = "The address range must be an IPv4 range in CIDR notation from /16 to /20, such as 10.0.0.0/16."
  }
}

variable "high_availability" {
  description = "Three zones with a NAT gateway each, so that no zone depends on another. Else two zones, as few as EKS allows, that share one. A change replaces the pools of nodes, new before old."
  type        = bool
  default     = false
}

variable "tags" {
  description = "Tags of everything that takes tags."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "name" {
  description = "Name of the cluster. What the network consists of is named after it."
  type        = string

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$", var.name))
    error_message = "The name must have 1 to 40 lower-case letters, digits and dashes, begin with a letter and not end with a dash."
  }
}

variable "region" {
  description = "Region of the network, such as fra1."
  type        = string
}

variable "cidr" {
  description = "Address range of the network, a /16 to /20, for nodes and load balancers. No other network of the account may overlap with it. Pods and services have ranges of their own, which the cloud chooses."
  type        = string
  default     = "10.0.0.0/16"

  validation {
    condition     = can(cidrnetmask(var.cidr)) && can(regex("/(1[6-9]|20)$", var.cidr))
    error_message = "The address range must be an IPv4 range in CIDR notation from /16 to /20, such as 10.0.0.0/16."
  }

  validation {
    condition     = !can(regex("^10\\.(229|244|245|246)\\.", var.cidr))
    error_message = "The cloud keeps 10.229.0.0/16 and 10.244.0.0/16 to 10.246.0.0/16 for itself."
  }
}

variable "high_availability" {
  description = "The same for all clouds. A network of this cloud has no zones."
  type        = bool
  default     = false
}

variable "tags" {
  description = "The same for all clouds. Networks of this cloud take no tags."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "name" {
  description = "Name of the cluster. What the network consists of is named after it."
  type        = string

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$", var.name))
    error_message = "The name must have 1 to 40 lower-case letters, digits and dashes, begin with a letter and not end with a dash."
  }
}

variable "region" {
  description = "Region of the network, such as europe-west1."
  type        = string
}

variable "cidr" {
  description = "Address range of the network, a /16 to /20: half of it is for pods, a sixteenth for nodes and another one for services. Each node takes 256 addresses for its pods: a /16 has room for 128 nodes, a /20 for 8."
  type        = string
  default     = "10.0.0.0/16"

  validation {
    condition     = can(cidrnetmask(var.cidr)) && can(regex("/(1[6-9]|20)$", var.cidr))
    error_message = "The address range must be an IPv4 range in CIDR notation from /16 to /20, such as 10.0.0.0/16."
  }
}

variable "high_availability" {
  description = "The same for all clouds. A network of this cloud spans all zones anyway."
  type        = bool
  default     = false
}

variable "tags" {
  description = "The same for all clouds. Networks of this cloud take no labels."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "name" {
  description = "Name of the cluster. What it consists of is named after it."
  type        = string

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$", var.name))
    error_message = "The name must have 1 to 32 lower-case letters, digits and dashes, begin with a letter and not end with a dash."
  }
}

variable "region" {
  description = "Region of the cluster, such as eu-central."
  type        = string
}

variable "kubernetes_version" {
  description = "Minor version of Kubernetes, such as 1.33. Patch releases are the cloud's business. A cluster can be moved up by one minor version at a time and never down."
  type        = string

  validation {
    condition     = can(regex("^1\\.[0-9]{2}$", var.kubernetes_version))
    error_message = "The version must be a minor version such as 1.33, without a patch release."
  }
}

variable "network_id" {
  description = "ID of the network, an output of the network module. Nodes of LKE have a network of their own, see the network module."
  type        = string
}

variable "subnet_ids" {
  description = "IDs of the subnets, an output of the network module. Nodes of LKE have a network of their own, see the network module."
  type        = list(string)
}

variable "instance_type" {
  description = "Machine of the pools that say none of their own."
  type        = string
}

variable "node_count" {
  description = "Nodes of the pools that say neither a count nor a min_count and a max_count."
  type        = number
  default     = 3
  nullable    = false

  validation {
    condition     = var.node_count >= 1 && floor(var.node_count) == var.node_count
    error_message = "A pool must have a whole number of nodes, 1 or more."
  }
}

variable "node_pools" {
  description = <<-EOT
    Pools of nodes; if left out, one by the name of system. A pool has a name, an instance_type, and either a count
    of nodes or, to be scaled with the load, a min_count and a max_count. The size of a node's disk follows from the
    instance_type, and disk_gb must be left out. The first pool runs the system's pods and so has no taints.
  EOT
  type = list(object({
    name          = string
    instance_type = optional(string)
    count         = optional(number)
    min_count     = optional(number)
    max_count     = optional(number)
    disk_gb       = optional(number)
    labels        = optional(map(string), {})
    taints = optional(list(object({
      key    = string
      value  = optional(string, "")
      effect = string
    })), [])
  }))
  default  = [{ name = "system" }]
  nullable = false

  validation {
    condition     = length(var.node_pools) > 0 && length(distinct([for pool in var.node_pools : pool.name])) == length(var.node_pools)
    error_message = "There must be a pool of nodes, and no two of the same name."
  }

  validation {
    condition     = alltrue([for pool in var.node_pools : can(regex("^[a-z][a-z0-9]{0,11}$", pool.name))])
    error_message = "The name of a pool must have 1 to 12 lower-case letters and digits and begin with a letter."
  }

  validation {
    condition = alltrue([
      for pool in var.node_pools :
      pool.count != null ? pool.min_count == null && pool.max_count == null : (pool.min_count == null) == (pool.max_count == null)
    ])
    error_message = "A pool must have either a count, or a min_count and a max_count."
  }

  validation {
    condition = alltrue([
      for pool in var.node_pools :
      pool.count != null ? pool.count >= 1 : try(pool.min_count >= 1 && pool.max_count >= pool.min_count, true)
    ])
    error_message = "A pool must have 1 node or more, and its max_count must not be below its min_count."
  }

  validation {
    condition = alltrue(flatten([
      for pool in var.node_pools : [for taint in pool.taints : contains(["NoSchedule", "PreferNoSchedule", "NoExecute"], taint.effect)]
    ]))
    error_message = "The effect of a taint must be NoSchedule, PreferNoSchedule or NoExecute."
  }

  validation {
    condition     = try(length(var.node_pools[0].taints), 0) == 0
    error_message = "The first pool runs the system's pods and must not have taints."
  }

  validation {
    condition     = alltrue([for pool in var.node_pools : pool.disk_gb == null])
    error_message = "The disk of a node follows from its instance_type here: leave disk_gb out."
  }
}

variable "private_endpoint" {
  description = "The same for all clouds. This one reaches the API server over the Internet only: say in allowed_cidrs from where."
  type        = bool
  default     = false

  validation {
    condition     = !var.private_endpoint
    error_message = "This cloud has no private endpoints: say in allowed_cidrs from where the API server is reached."
  }
}

variable "allowed_cidrs" {
  description = "Address ranges from which the API server is reached. By default all, so that only its authentication protects it."
  type        = list(string)
  default     = ["0.0.0.0/0"]
  nullable    = false

  validation {
    condition     = length(var.allowed_cidrs) > 0 && alltrue([for cidr in var.allowed_cidrs : can(cidrnetmask(cidr))])
    error_message = "There must be an address range, and each must be an IPv4 range in CIDR notation, such as 203.0.113.0/24."
  }
}

variable "high_availability" {
  description = "A control plane of several machines. It cannot be taken back: turning it off later is refused by the cloud."
  type        = bool
  default     = false
}

variable "tags" {
  description = "Tags of everything that takes tags, as key:value of at most 50 characters."
  type        = map(string)
  default     = {}
  nullable    = false
}

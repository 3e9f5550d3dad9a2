# A stand-in that needs no cloud: put the control plane and the nodes here.
variable "name" {
  description = "Name of the cluster."
  type        = string
}

variable "network_id" {
  description = "The network that it is in."
  type        = string
}

variable "node_count" {
  description = "How many nodes there are."
  type        = number
}

variable "instance_type" {
  description = "The machine of a node."
  type        = string
}

variable "tags" {
  description = "Tags of everything."
  type        = map(string)
  default     = {}
}

resource "terraform_data" "control_plane" {
  input = { name = var.name, network = var.network_id, tags = var.tags }
}

resource "terraform_data" "node" {
  count = var.node_count

  input            = { name = "${var.name}-${count.index}", machine = var.instance_type }
  triggers_replace = [terraform_data.control_plane.id]
}

output "endpoint" {
  value = "https://${var.name}.example.com"
}

output "kubeconfig" {
  value     = "server: https://${var.name}.example.com"
  sensitive = true
}

output "node_count" {
  value = length(terraform_data.node)
}

# A stand-in that needs no cloud: put the resources of a network here.
variable "name" {
  description = "Name of the network."
  type        = string
}

variable "cidr" {
  description = "Its address range."
  type        = string
}

resource "terraform_data" "network" {
  input = { name = var.name, cidr = var.cidr }
}

output "network_id" {
  value = terraform_data.network.id
}

variable "name" {
  type = string
}

variable "region" {
  type = string
}

variable "cidr" {
  type = string
}

resource "terraform_data" "vpc" {
  input = {
    name   = var.name
    region = var.region
    cidr   = var.cidr
  }
}

resource "terraform_data" "subnet" {
  for_each = toset(["a", "b"])

  input = {
    vpc  = terraform_data.vpc.id
    zone = "${var.region}-${each.key}"
  }
}

output "subnet_ids" {
  value = [for zone in sort(keys(terraform_data.subnet)) : terraform_data.subnet[zone].id]
}

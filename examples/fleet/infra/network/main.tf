variable "cidr" {
  type = string
}

resource "terraform_data" "vpc" {
  input = { cidr = var.cidr }
}

resource "terraform_data" "subnet" {
  for_each = toset(["a", "b"])
  input    = { vpc = terraform_data.vpc.id, zone = each.key }
}

locals {
  zones = slice(["a", "b", "c"], 0, var.high_availability ? 3 : 2)
}

resource "terraform_data" "network" {
  input = {
    name   = var.name
    region = var.region
    cidr   = var.cidr
    tags   = var.tags
  }
}

resource "terraform_data" "subnet" {
  for_each = { for i, zone in local.zones : zone => cidrsubnet(var.cidr, 2, i) }

  input = {
    network = terraform_data.network.id
    zone    = "${var.region}-${each.key}"
    cidr    = each.value
    tags    = var.tags
  }
}

resource "digitalocean_vpc" "this" {
  name        = var.name
  description = "Network of the cluster ${var.name}"
  region      = var.region
  ip_range    = var.cidr
}

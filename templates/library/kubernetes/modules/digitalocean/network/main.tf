resource "digitalocean_vpc" "this" {
  name        = var.name
  description = "Network of the cluster ${var.name}"
  region      = var.region
  ip_range    = var.cidr

  # The cloud deletes a cluster's machines after it has said that the cluster is
  # gone; until then the network is in use. The provider would give up after two
  # minutes.
  timeouts {
    delete = "30m"
  }

  lifecycle {
    # Another range means another network. Left alone, and refused aloud.
    ignore_changes = [ip_range]

    postcondition {
      condition     = self.ip_range == var.cidr
      error_message = "cidr cannot be changed from ${self.ip_range} to ${var.cidr}: that would replace the network, and the cluster with it. Make another cluster, and move what runs in this one."
    }
  }
}

# Nodes of LKE have a private network of their own that cannot be chosen. This
# one is for what is next to the cluster, such as databases, and costs nothing.
resource "linode_vpc" "this" {
  label       = var.name
  description = "Network beside the cluster ${var.name}"
  region      = var.region
}

resource "linode_vpc_subnet" "this" {
  vpc_id = linode_vpc.this.id
  label  = "${var.name}-services"
  ipv4   = var.cidr

  lifecycle {
    # Another range means another subnet. Left alone, and refused aloud.
    ignore_changes = [ipv4]

    postcondition {
      condition     = self.ipv4 == var.cidr
      error_message = "cidr cannot be changed from ${self.ipv4} to ${var.cidr}: that would replace the subnet, and cut off what is in it. Make another cluster, and move what runs in this one."
    }
  }
}

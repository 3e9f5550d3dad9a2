terraform {
  required_providers {
    cloud = { source = "holdfast-dev/cloud" }
  }
}

provider "cloud" {
  folder = "world"
}

resource "cloud_cluster" "main" {
  name = "main"
  size = 3
  tags = { team = "payments" }
}

resource "cloud_node_pool" "pool" {
  count = 2
  name  = "pool-${count.index}"
}

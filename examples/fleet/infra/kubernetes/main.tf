variable "nodes" {
  type = number
}

variable "image" {
  type = string
}

resource "terraform_data" "control_plane" {
  input = { version = "1.34" }
}

resource "terraform_data" "node_pool" {
  input = { size = var.nodes, image = var.image }
}

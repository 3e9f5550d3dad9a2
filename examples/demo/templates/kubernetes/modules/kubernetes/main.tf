variable "name" {
  type = string
}

variable "subnet_ids" {
  type = list(string)
}

variable "kubernetes_version" {
  type = string
}

variable "node_count" {
  type = number
}

variable "instance_type" {
  type = string
}

variable "boot_seconds" {
  type = number
}

variable "image_list" {
  type = string
}

locals {
  # With a cloud this is a data source that asks for its newest image.
  images = var.image_list == "" ? ["node-1"] : split("\n", trimspace(file(var.image_list)))
}

resource "terraform_data" "control_plane" {
  input = {
    name    = var.name
    version = var.kubernetes_version
    subnets = var.subnet_ids
  }
}

resource "terraform_data" "node" {
  count = var.node_count

  input = {
    cluster       = var.name
    instance_type = var.instance_type
  }

  # A node of another type is another node.
  triggers_replace = [var.instance_type]

  provisioner "local-exec" {
    command = "sleep ${var.boot_seconds}"
  }
}

resource "terraform_data" "machine_image" {
  input = local.images[length(local.images) - 1]
}

output "endpoint" {
  value = "https://${var.name}.demo.invalid:6443"
}

output "kubeconfig" {
  value     = "server: https://${var.name}.demo.invalid:6443, token: ${terraform_data.control_plane.id}"
  sensitive = true
}

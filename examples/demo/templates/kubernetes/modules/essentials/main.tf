variable "endpoint" {
  type = string
}

variable "monitoring" {
  type = bool
}

resource "terraform_data" "ingress" {
  input = { endpoint = var.endpoint }
}

resource "terraform_data" "monitoring" {
  count = var.monitoring ? 1 : 0

  input = { endpoint = var.endpoint }
}

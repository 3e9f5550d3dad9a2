variable "password" {
  sensitive = true
  default   = "planted-before-1"
}

resource "terraform_data" "db" {
  input = { user = "admin", password = var.password, conf = sensitive({ hidden_key = "planted-hidden-0" }) }
}

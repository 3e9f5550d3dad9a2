variable "password" {
  sensitive = true
  default   = "planted-after-22"
}

variable "api_token" {
  default = "planted-heuristic-3"
}

resource "terraform_data" "db" {
  input = { user = "root", password = var.password, conf = sensitive({ hidden_key = "planted-hidden-1" }) }
}

resource "terraform_data" "app" {
  input = { api_token = var.api_token, url = "https://x?p=${nonsensitive(var.password)}", token_ttl = 3600 }
}

resource "terraform_data" "list" {
  input = [sensitive("planted-list-4444"), "plain"]
}

output "password" {
  value     = var.password
  sensitive = true
}

variable "text" {
  type = string
}

resource "terraform_data" "greeting" {
  input = var.text
}

output "text" {
  value = terraform_data.greeting.output
}

variable "greeting" {
  type = string
}

module "greeting" {
  source = "../../modules/greeting"
  text   = var.greeting
}

output "text" {
  value = module.greeting.text
}

resource "terraform_data" "pool" {
  input = { size = 5, labels = { team = "payments", "odd key" = "y" }, zones = ["a", "b"] }
}

resource "terraform_data" "same" {
  input = "same"
}

output "size" {
  value = 5
}

output "new" {
  value = terraform_data.pool.output.size
}

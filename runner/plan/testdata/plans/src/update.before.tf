resource "terraform_data" "pool" {
  input = { size = 3, labels = { team = "payments", "odd key" = "x" }, zones = ["a"] }
}

resource "terraform_data" "same" {
  input = "same"
}

output "size" {
  value = 3
}

output "old" {
  value = "x"
}

resource "terraform_data" "b" {
  count = 1
  input = "b"
}

resource "terraform_data" "kept" {
  input = "a"
}

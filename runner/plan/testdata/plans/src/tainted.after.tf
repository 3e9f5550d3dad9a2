resource "terraform_data" "node" {
  input = "a"
}

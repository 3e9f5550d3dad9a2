resource "terraform_data" "old" {
  input = "a"
}

resource "terraform_data" "other" {
  input = "b"
}

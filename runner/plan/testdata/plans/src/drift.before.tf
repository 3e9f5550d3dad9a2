resource "local_file" "conf" {
  filename = "${path.module}/file.txt"
  content  = "wanted"
}

resource "terraform_data" "a" {
  input = "a"
}

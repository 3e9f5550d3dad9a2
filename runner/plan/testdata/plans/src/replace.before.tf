resource "terraform_data" "cluster" {
  input            = "v1"
  triggers_replace = { version = "1.30" }
}

resource "terraform_data" "pool" {
  triggers_replace = "small"
  lifecycle {
    create_before_destroy = true
  }
}

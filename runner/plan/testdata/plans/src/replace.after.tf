resource "terraform_data" "cluster" {
  input            = "v1"
  triggers_replace = { version = "1.33" }
}

resource "terraform_data" "pool" {
  triggers_replace = "large"
  lifecycle {
    create_before_destroy = true
  }
}

removed {
  from = terraform_data.kept
  lifecycle {
    destroy = false
  }
}

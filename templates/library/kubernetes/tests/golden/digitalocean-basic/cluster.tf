terraform {
  backend "http" {
  }
}

locals {
  cluster = {
    "name"   = "test"
    "region" = "fra1"
  }
}

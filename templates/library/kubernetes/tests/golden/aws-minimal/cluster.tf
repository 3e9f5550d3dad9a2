terraform {
  backend "http" {
  }
}

locals {
  cluster = {
    "name"   = "test"
    "region" = "eu-west-1"
  }
}

terraform {
  backend "http" {
  }
}

locals {
  cluster = {
    "name"   = "test"
    "region" = "europe-west1"
  }
}

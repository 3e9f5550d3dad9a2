terraform {
  required_providers {
    restapi = { source = "Mastercard/restapi" }
  }
}

provider "restapi" {
  uri                  = "http://127.0.0.1:8199"
  write_returns_object = true
}

resource "restapi_object" "pool" {
  path = "/api/objects"
  data = jsonencode({ id = "pool", size = 3 })
}

resource "restapi_object" "gone" {
  path = "/api/objects"
  data = jsonencode({ id = "gone", size = 1 })
}

resource "terraform_data" "reader" {
  input = restapi_object.pool.api_data["size"]
}

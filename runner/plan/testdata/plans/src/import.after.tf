import {
  to = terraform_data.adopted
  id = "0f8b6a7e-1111-2222-3333-444455556666"
}

resource "terraform_data" "adopted" {
}

import {
  to = terraform_data.grown
  id = "0f8b6a7e-1111-2222-3333-444455556667"
}

resource "terraform_data" "grown" {
  input = "new"
}

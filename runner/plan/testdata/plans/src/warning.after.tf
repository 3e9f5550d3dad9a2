resource "terraform_data" "a" {
  input = "a"
}

check "size" {
  assert {
    condition     = terraform_data.a.input == "b"
    error_message = "The input is not b, which is what everybody wants it to be, and this sentence is long enough to be wrapped by the engine."
  }
}

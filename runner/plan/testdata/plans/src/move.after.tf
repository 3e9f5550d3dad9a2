resource "terraform_data" "new" {
  input = "a"
}

resource "terraform_data" "changed" {
  input = "c"
}

moved {
  from = terraform_data.old
  to   = terraform_data.new
}

moved {
  from = terraform_data.other
  to   = terraform_data.changed
}

job "nightly" {
  command = ["true"]
  schedule {
    crom = "@daily"
  }
}

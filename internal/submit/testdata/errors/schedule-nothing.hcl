job "nightly" {
  command = ["true"]
  schedule {
    zone = "UTC"
  }
}

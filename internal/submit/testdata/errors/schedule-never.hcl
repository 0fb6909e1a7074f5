job "nightly" {
  command = ["true"]
  schedule {
    cron = "0 0 30 2 *"
  }
}

job "nightly" {
  command = ["true"]
  schedule {
    cron = "*/0 * * * *"
  }
}

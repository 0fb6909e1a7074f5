job "nightly" {
  command = ["true"]
  schedule {
    cron = "@daily"
    deadline = "10s"
  }
}

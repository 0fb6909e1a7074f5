job "nightly" {
  command = ["true"]
  schedule {
    cron = "@daily"
  }
  schedule {
    cron = "@hourly"
  }
}

job "nightly" {
  command     = ["true"]
  start_after = "18:00"
  schedule {
    cron = "@daily"
  }
}

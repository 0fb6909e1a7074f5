job "nightly" {
  command = ["true"]
  schedule {
    cron = "@daily"
    overlap = "forbid"
  }
}

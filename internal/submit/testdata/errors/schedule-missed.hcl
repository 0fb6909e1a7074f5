job "nightly" {
  command = ["true"]
  schedule {
    cron = "@daily"
    missed = 3
  }
}

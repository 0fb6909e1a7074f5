job "hub" {
  command = ["true"]
  service {}
  schedule {
    cron = "@daily"
  }
}

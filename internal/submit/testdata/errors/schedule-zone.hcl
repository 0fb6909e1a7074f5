job "nightly" {
  command = ["true"]
  schedule {
    cron = "@daily"
    zone = "Europe/Atlantis"
  }
}

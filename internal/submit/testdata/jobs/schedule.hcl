job "nightly" {
  command = ["true"]
  schedule {
    cron     = "H 3 * * mon-fri"
    zone     = "Europe/Berlin"
    overlap  = "replace"
    missed   = "all"
    deadline = "6h"
  }
}

# A job that is made each night, at a minute of its own between 3:00 and 4:00. If the
# submit node was down then, it is made up to six hours later.
job "nightly" {
  command = ["/bin/sh", "-c", "du -s /var/tmp"]

  schedule {
    cron     = "H 3 * * *"
    zone     = "Europe/Berlin"
    deadline = "6h"
  }
}

job "hub" {
  command = ["/bin/echo"]
  service {
    backoff {
      max = "2h"
    }
  }
}

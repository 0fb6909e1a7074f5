job "hub" {
  command = ["/bin/echo"]
  service {
    backoff {
      first = "10s"
      max   = "5s"
    }
  }
}

job "hub" {
  command = ["/bin/echo"]
  service {
    backoff {
      first = "2m"
    }
  }
}

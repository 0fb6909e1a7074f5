job "hub" {
  command = ["/bin/echo"]
  lease   = "2m"
  service {
    lease = "60s"
  }
}

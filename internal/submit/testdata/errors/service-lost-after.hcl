job "hub" {
  command = ["/bin/echo"]
  service {
    lease      = "60s"
    lost_after = "30s"
  }
}

job "hub" {
  command = ["/bin/echo"]
  service {
    lost_afer = "30s"
  }
}

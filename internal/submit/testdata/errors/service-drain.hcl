job "hub" {
  command = ["/bin/echo"]
  service { drain = "1h" }
}

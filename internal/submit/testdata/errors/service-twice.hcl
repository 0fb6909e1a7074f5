job "hub" {
  command = ["/bin/echo"]
  service {}
  service {
    overlap = true
  }
}

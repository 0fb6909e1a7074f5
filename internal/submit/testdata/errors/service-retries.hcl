job "hub" {
  command = ["/bin/echo"]
  retries = 3
  service {}
}

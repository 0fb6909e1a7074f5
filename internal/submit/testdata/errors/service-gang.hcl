job "hub" {
  command = ["/bin/echo"]
  count   = 2
  gang    = true
  service {}
}

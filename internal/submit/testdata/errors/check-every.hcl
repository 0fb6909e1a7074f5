job "hub" {
  command = ["/bin/echo"]
  service {}
  check "up" {
    exec  = ["true"]
    every = "500ms"
  }
}

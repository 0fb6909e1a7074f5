job "hub" {
  command = ["/bin/echo"]
  service {}
  check "up" {
    exec    = ["true"]
    every   = "5s"
    timeout = "6s"
  }
}

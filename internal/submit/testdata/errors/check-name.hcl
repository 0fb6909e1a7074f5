job "hub" {
  command = ["/bin/echo"]
  service {}
  check "Is up" { exec = ["true"] }
}

job "hub" {
  command = ["/bin/echo"]
  check "up" { exec = ["true"] }
}

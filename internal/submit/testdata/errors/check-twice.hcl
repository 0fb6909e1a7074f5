job "hub" {
  command = ["/bin/echo"]
  service {}
  check "up" { exec = ["true"] }
  check "up" { exec = ["false"] }
}

job "hub" {
  command = ["/bin/echo"]
  port "http" {}
  service {}
  check "up" {
    http   = "/"
    method = "POST"
  }
}

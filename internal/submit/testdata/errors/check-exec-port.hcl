job "hub" {
  command = ["/bin/echo"]
  service {}
  check "up" {
    exec = ["true"]
    port = "http"
  }
}

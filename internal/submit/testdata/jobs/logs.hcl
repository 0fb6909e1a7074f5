job "hub" {
  command = ["/bin/echo"]
  service {}
  logs {
    size  = "1MiB"
    files = 3
    keep  = "2d"
  }
}

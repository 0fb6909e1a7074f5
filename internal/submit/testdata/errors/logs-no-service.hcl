job "web" {
  command = ["/bin/echo"]
  logs { size = "1MiB" }
}

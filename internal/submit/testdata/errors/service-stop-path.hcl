job "hub" {
  command = ["/bin/echo"]
  port "http" {}
  service { stop_url = "quit" }
}

job "hub" {
  command = ["/bin/echo"]
  service { stop_url = "/quit" }
}

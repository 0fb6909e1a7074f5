job "hub" {
  command = ["/bin/echo"]
  service { }
  update { promote = "10m" }
}

job "hub" {
  command = ["/bin/echo"]
  service { }
  update { ready_within = "20m" }
}

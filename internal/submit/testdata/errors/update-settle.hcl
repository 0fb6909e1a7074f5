job "hub" {
  command = ["/bin/echo"]
  service { }
  update {
    settle       = "2m"
    ready_within = "1m"
  }
}

job "hub" {
  command = ["/bin/echo"]
  count = 2
  service { }
  update { failures = 2 }
}

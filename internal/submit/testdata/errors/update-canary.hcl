job "hub" {
  command = ["/bin/echo"]
  count = 2
  service { }
  update { canary = 3 }
}

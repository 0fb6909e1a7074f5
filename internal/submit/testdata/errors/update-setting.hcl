job "hub" {
  command = ["/bin/echo"]
  service { }
  update { at_one = 2 }
}

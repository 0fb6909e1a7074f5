job "hub" {
  command = ["/bin/echo"]
  update { at_once = 2 }
}

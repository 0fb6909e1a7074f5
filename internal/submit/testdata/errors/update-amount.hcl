job "hub" {
  command = ["/bin/echo"]
  service { }
  update { at_once = "many" }
}

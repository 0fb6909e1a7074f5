job "hub" {
  command = ["/bin/echo"]
  service { }
  update { progress = 600 }
}

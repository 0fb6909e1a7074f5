job "hub" {
  command = ["/bin/echo"]
  service { }
  update { max_down = 0 }
}

job "hub" {
  command = ["/bin/echo"]
  service { }
  update { disruptions = -1 }
}

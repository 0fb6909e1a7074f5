job "hub" {
  command = ["/bin/echo"]
  count = 3
  service { }
  update { tasks = "2-5" }
}

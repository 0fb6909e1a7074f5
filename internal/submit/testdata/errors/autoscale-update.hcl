job "web" {
  command = ["/bin/echo"]
  service { }
  update { canary = 3 }
  autoscale {
    min = 2
    max = 5
    cpu = "70%"
  }
}

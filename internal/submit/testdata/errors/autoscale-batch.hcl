job "web" {
  command = ["/bin/echo"]
  autoscale {
    max = 3
    cpu = "70%"
  }
}

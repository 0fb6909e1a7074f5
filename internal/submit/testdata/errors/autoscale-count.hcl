job "web" {
  command = ["/bin/echo"]
  count = 5
  service { }
  port "http" { }
  autoscale {
    max = 3
    cpu = "70%"
  }
}

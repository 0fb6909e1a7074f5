job "web" {
  command = ["/bin/echo"]
  service { }
  port "http" { }
  autoscale {
    min = 5
    max = 3
    cpu = "70%"
  }
}

job "web" {
  command = ["/bin/echo"]
  service { }
  port "http" { }
  autoscale {
    cpu = "70%"
  }
}

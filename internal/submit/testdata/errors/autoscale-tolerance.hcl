job "web" {
  command = ["/bin/echo"]
  service { }
  port "http" { }
  autoscale {
    max       = 3
    cpu       = "70%"
    tolerance = "100%"
  }
}

job "web" {
  command = ["/bin/echo"]
  for_each = ["a", "b"]
  service { }
  port "http" { }
  autoscale {
    max = 3
    cpu = "70%"
  }
}

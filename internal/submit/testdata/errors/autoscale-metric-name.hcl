job "web" {
  command = ["/bin/echo"]
  service { }
  port "http" { }
  autoscale {
    max    = 3
    metric = "in flight"
    port   = "http"
    target = 10
  }
}

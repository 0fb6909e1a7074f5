job "web" {
  command = ["/bin/echo"]
  service { }
  port "http" { }
  autoscale {
    max    = 3
    metric = "in_flight"
    port   = "http"
    path   = "metrics"
    target = 10
  }
}

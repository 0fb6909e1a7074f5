job "web" {
  command = ["/bin/echo", "${port.http}"]
  service { }
  port "http" { }
  update { max_down = 1 }
  autoscale {
    min         = 2
    max         = 10
    metric      = "requests_in_flight"
    port        = "http"
    path        = "/metrics"
    target      = 10
    tolerance   = "5%"
    up_window   = "30s"
    down_window = "2m"
    up_by       = "50%"
    down_by     = 1
    period      = "1m"
    every       = "10s"
  }
}

job "workers" {
  command = ["/bin/echo"]
  count   = 3
  service { }
  autoscale {
    max         = 20
    waiting_job = "frames"
    target      = 5
  }
}

job "model" {
  command = ["/bin/echo"]
  service { }
  autoscale {
    max = 4
    cpu = "70%"
  }
}

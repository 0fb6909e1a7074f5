job "web" {
  command = ["/bin/echo"]
  service { }
  port "http" { }
  autoscale {
    max           = 3
    waiting_queue = ""
    target        = 5
  }
}

job "hub" {
  command = ["/bin/echo"]
  count   = 10
  service { }
  update {
    at_once      = 2
    surge        = "5%"
    max_down     = "20%"
    settle       = "5s"
    ready_within = "2m"
    progress     = "5m"
    failures     = 1
    on_failure   = "pause"
    canary       = 1
    promote      = "10m"
    disruptions  = 8
    pulse        = "30s"
    tasks        = "0-7,9"
    resize       = "restart"
  }
}

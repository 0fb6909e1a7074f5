job "hub" {
  command = ["/bin/echo"]
  count   = 3
  service {
    lease      = "30s"
    lost_after = "90s"
    restarts   = 3
    window     = "5m"
    backoff {
      first = "500ms"
      max   = "2m"
    }
  }
}

job "licences" {
  command   = ["/bin/echo"]
  app_class = "batch"
  service {
    overlap = true
  }
}

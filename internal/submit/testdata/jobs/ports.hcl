job "web" {
  command     = ["true", "--listen=:${port.http}", port.metrics-2, "task ${task.index} of $(port.http)"]
  environment = { METRICS = "localhost:${port.metrics-2}" }
  count       = 2
  port "http" {
    static = 8080
    listen = true
    host   = "*"
  }
  port "metrics-2" { host = "localhost" }
  service {}
}

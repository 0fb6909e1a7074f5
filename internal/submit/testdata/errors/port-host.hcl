job "web" {
  command = ["true"]
  port "http" { host = "10.0.0.1" }
  service {}
}

job "web" {
  command = ["true"]
  port "http" { listen = "yes" }
  service {}
}

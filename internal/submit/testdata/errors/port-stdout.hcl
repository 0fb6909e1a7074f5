job "web" {
  command = ["true"]
  stdout  = "out.${port.http}"
  port "http" {}
  service {}
}

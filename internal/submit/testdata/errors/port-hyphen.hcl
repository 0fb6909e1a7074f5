job "web" {
  command = ["true"]
  port "http-" {}
  service {}
}

job "web" {
  command = ["true"]
  port "Http" {}
  service {}
}

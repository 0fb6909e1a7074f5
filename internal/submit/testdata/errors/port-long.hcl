job "web" {
  command = ["true"]
  port "the-web-interface" {}
  service {}
}

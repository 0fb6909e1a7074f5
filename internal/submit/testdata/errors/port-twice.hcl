job "web" {
  command = ["true"]
  port "http" {}
  port "http" {}
  service {}
}

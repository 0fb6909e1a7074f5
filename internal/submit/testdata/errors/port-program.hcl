job "web" {
  command = ["serve-${port.http}"]
  port "http" {}
  service {}
}

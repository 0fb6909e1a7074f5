job "web" {
  command = ["serve", "--port=${port.http + 1}"]
  port "http" {}
  service {}
}

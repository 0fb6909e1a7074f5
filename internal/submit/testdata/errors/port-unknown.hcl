job "web" {
  command = ["serve", "--port=${port.htp}"]
  port "http" {}
  service {}
}

job "web" {
  command = ["true"]
  port {}
  service {}
}

job "web" {
  command = ["true"]
  port "http" { static = 65536 }
  service {}
}

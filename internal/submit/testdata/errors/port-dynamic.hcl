job "web" {
  command = ["true"]
  port "http" { static = 20001 }
  service {}
}

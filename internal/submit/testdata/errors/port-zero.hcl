job "web" {
  command = ["true"]
  port "http" { static = 0 }
  service {}
}

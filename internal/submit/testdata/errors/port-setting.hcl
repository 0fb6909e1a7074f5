job "web" {
  command = ["true"]
  port "http" { number = 80 }
  service {}
}

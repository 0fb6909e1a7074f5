job "web" {
  command = ["true"]
  port "http" { static = 8080 }
  port "web"  { static = 8080 }
  service {}
}

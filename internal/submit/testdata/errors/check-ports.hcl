job "hub" {
  command = ["/bin/echo"]
  port "http" {}
  port "db" {}
  service {}
  check "up" { http = "/" }
}

job "hub" {
  command = ["/bin/echo"]
  port "http" {}
  port "db" {}
  service {
    stop_url  = "/quit"
    stop_port = "http"
  }
  check "front" {
    http    = "/health"
    port    = "http"
    method  = "HEAD"
    headers = { Host = "hub.example.org" }
  }
  check "db" {
    tcp  = true
    port = "db"
  }
}

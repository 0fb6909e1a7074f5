job "web" {
  command = ["true"]
  port "http" { listen = true }
  checkpoint { every = "1h" }
  service {}
}

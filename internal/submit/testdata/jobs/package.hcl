job "web" {
  command = ["/app/bin/server"]
  package "web@live" { at = "/app" }
  package "model@2026.11" { at = "/opt/model/" }
}

job "image" {
  image   = "tool@live"
  command = ["tool"]
  package "sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a" {
    at = "/data"
  }
}

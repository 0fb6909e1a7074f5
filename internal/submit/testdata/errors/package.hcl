job "a" {
  command = ["true"]
  package "web" { at = "/app" }
  package "docker://web" { at = "/app" }
  package "web@live" { at = "app" }
  package "web@live" { at = "/etc/app" }
  package "web@live" { at = "/" }
  package "web@live" {
    at   = "/app"
    read = true
  }
  package "web@live" {}
  package { at = "/app" }
  package "web@live" { at = "/app" }
  package "other@live" { at = "/app/plugins" }
}

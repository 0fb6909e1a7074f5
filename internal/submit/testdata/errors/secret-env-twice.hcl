job "a" {
  command = ["true"]
  secret "db" { env = "PASSWORD" }
  secret "web" { env = "PASSWORD" }
}

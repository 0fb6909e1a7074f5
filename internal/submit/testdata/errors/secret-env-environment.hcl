job "a" {
  command     = ["true"]
  environment = { PASSWORD = "none" }
  secret "db" { env = "PASSWORD" }
}

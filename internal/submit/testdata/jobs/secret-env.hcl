job "a" {
  command = ["true"]
  secret "db" { env = "DB_PASSWORD" }
  secret "tls.key" {}
}

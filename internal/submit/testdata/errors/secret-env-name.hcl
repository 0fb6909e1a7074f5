job "a" {
  command = ["true"]
  secret "db" { env = "DB-PASSWORD" }
}

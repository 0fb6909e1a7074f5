job "a" {
  command = ["true"]
  secret "db" { env = "ROOST_DB" }
}

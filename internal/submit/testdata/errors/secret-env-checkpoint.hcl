job "a" {
  command = ["true"]
  checkpoint {}
  secret "db" { env = "PASSWORD" }
}

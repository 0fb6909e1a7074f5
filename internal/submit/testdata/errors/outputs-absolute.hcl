job "a" {
  command  = ["echo", "hi"]
  outputs  = { out = "/b" }
}

job "a" {
  command  = ["echo", "hi"]
  transfer = "auto"
  outputs  = { out = "b" }
}

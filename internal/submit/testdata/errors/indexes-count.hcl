job "a" {
  command = ["echo", "hi"]
  count   = 5
  indexes = "1-5"
}

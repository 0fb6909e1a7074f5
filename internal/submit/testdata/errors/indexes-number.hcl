job "a" {
  command = ["echo", "hi"]
  indexes = 5
}

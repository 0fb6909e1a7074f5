job "a" {
  command = ["echo", "hi"]
  indexes = "9-1"
}

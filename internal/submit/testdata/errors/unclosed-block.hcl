job "a" {
  command = ["echo"]

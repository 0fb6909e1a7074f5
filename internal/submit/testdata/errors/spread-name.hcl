job "a" {
  command = ["true"]
  spread = "two words"
}

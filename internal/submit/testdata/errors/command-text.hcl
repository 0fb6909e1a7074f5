job "train" {
  command = "echo hello"
}

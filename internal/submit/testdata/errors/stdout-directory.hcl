job "train" {
  command = ["echo", "hi"]
  stdout = "logs/"
}

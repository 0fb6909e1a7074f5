job "train" {
  command = ["echo", "hi"]
  priority = 5000
}

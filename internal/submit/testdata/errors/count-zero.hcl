job "train" {
  command = ["echo", "hi"]
  count = 0
}

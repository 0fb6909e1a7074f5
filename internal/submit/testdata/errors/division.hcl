job "train" {
  command = ["echo", "hi"]
  count = 1 / 0
}

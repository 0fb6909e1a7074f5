job "train" {
  command = ["echo", "hi"]
  count = 2.5
}

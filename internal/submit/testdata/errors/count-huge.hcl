job "train" {
  command = ["echo", "hi"]
  count = 1000000000
}

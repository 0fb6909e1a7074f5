job "train" {
  command = ["echo", "hi"]
  count = len([1])
}

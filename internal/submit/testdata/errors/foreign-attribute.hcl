job "train" {
  command = ["echo", "hi"]
  args = ["x"]
}

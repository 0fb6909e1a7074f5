job "train" {
  command = ["echo", "hi"]
  count = ceil("x")
}

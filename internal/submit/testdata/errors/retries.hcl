job "train" {
  command = ["echo", "hi"]
  retries = -1
}

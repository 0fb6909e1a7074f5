job "train" {
  command = ["echo", "hi"]
  max_running = 0
}

job "train" {
  command = ["echo", "hi"]
  start_after = "tomorrow"
}

job "train" {
  command = ["echo", "hi"]
  environment = { NOW = timestamp() }
}

job "train" {
  command = ["echo", "hi"]
  gpus = 0.5
}

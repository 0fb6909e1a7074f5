job "train" {
  command = ["echo", "hi"]
  gpus = -1
}

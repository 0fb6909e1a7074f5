job "train" {
  command = ["echo", "hi"]
  gpus = 2000
}

job "train" {
  command = ["echo", "hi"]
  gpus = "two"
}

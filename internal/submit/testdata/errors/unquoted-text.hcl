job "train" {
  command = ["echo", "hi"]
  band = batch
}

job "train" {
  command = ["echo", "hi"]
  lease = "1s"
}

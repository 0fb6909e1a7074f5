job "train" {
  command = ["echo", "hi"]
  labels = "x"
}

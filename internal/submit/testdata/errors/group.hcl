job "train" {
  command = ["echo", "hi"]
  group = "a b"
}

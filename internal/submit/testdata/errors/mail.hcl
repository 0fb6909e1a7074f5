job "train" {
  command = ["echo", "hi"]
  mail = "ann@example.org"
}

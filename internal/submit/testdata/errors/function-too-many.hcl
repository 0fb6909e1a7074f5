job "train" {
  command = ["echo", "hi"]
  stdout = upper("a", "b")
}

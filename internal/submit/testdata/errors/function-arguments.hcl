job "train" {
  command = ["echo", "hi"]
  stdout = join(",")
}

job "train" {
  command = ["echo", "hi"]
  labels = { team = ["a"] }
}

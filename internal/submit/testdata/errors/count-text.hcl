job "train" {
  command = ["echo", "hi"]
  count = "many"
}

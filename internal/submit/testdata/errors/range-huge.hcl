job "train" {
  command = ["echo", "hi"]
  for_each = range(1000000000)
}

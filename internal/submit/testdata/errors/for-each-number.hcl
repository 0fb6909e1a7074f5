job "train" {
  command = ["echo", "hi"]
  for_each = 16
}

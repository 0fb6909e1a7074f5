job "train" {
  command = ["echo", "hi"]
  count = 3
  for_each = range(3)
}

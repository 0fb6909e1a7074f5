job "train" {
  command = ["echo", "hi"]
  stdout = each.value
}

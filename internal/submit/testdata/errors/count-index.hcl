job "train" {
  command = ["echo", "hi"]
  count = 3
  stdout = "o.${count.index}"
}

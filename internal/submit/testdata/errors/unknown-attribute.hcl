job "train" {
  command = ["echo", "hi"]
  memmory = "4GiB"
}

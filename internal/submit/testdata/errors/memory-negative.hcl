job "train" {
  command = ["echo", "hi"]
  memory = "-4GiB"
}

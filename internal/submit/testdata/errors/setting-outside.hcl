memory = "4GiB"
job "train" {
  command = ["echo", "hi"]
}

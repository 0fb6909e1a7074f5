job "train" {
  command = ["echo"]
  memory = 4GiB
}

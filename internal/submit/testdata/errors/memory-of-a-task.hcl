job "train" {
  command = ["echo", "hi"]
  count = 3
  memory = "${task.index}GiB"
}

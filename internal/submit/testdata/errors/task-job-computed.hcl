job "a" {
  command = ["echo", task.job + 1]
}

job "train" {
  command = ["echo", "hi"]
  count = 2
  environment = { A = task.id }
}

job "a" {
  command = ["echo", "hi"]
  inputs  = ["${task.job}.csv"]
}

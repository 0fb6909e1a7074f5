job "a" {
  command   = ["echo", "hi"]
  directory = "run.${task.job}"
}

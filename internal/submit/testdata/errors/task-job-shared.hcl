job "a" {
  command = ["echo", "hi"]
  count   = 2
  stdout  = "a.o${task.job}"
}

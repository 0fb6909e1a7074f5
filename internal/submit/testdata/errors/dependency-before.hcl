job "a" {
  command    = ["echo", "hi"]
  depends_on = [{ id = job.b, when = "beforeok" }]
}
job "b" {
  command = ["echo", "hi"]
}

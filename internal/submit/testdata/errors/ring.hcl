job "a" {
  command = ["echo"]
  depends_on = [job.c]
}
job "b" {
  command = ["echo"]
  depends_on = [job.a]
}
job "c" {
  command = ["echo"]
  depends_on = [job.b]
}

job "train" {
  command = ["echo", "hi"]
  depends_on = [job.train]
}

job "train" {
  command = ["echo", "hi"]
  walltime = 3600
}

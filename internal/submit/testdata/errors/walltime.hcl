job "train" {
  command = ["echo", "hi"]
  walltime = "soon"
}

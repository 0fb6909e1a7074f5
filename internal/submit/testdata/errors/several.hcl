job "train" {
  command = ["echo", "hi"]
  memory = 4
  walltime = 5
  bandd = "x"
}

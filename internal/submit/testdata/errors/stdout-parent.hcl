job "train" {
  command = ["echo", "hi"]
  stdout = "nolog/out.txt"
}

job "train" {
  command = ["echo", "hi"]
  inputs = ["data/*.dat"]
}

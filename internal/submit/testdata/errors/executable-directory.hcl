job "train" {
  executable = "./data"
}

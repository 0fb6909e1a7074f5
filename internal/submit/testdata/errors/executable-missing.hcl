job "train" {
  executable = "./simulat"
}

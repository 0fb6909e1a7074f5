job "train" {
  executable = './simulate'
}

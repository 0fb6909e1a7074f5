job "train" {
  command = []
}

job "train" {
  command = ["echo", "hi"]
  outputs = ["../result.csv"]
}

job "train" {
  command = ["echo", "hi"]
  inputs = ["data/d.csv"]
}

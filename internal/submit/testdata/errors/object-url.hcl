job "train" {
  command = ["echo", "hi"]
  inputs = ["s3://Data/x.csv"]
}

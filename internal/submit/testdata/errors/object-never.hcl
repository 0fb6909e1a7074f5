job "train" {
  command = ["echo", "hi"]
  transfer = "never"
  inputs = ["s3://data/x.csv"]
}

job "train" {
  command = ["echo", "hi"]
  outputs = ["s3://data/x.csv"]
}

job "train" {
  command = ["echo", "hi"]
  outputs = { "x.csv" = "s3://data" }
}

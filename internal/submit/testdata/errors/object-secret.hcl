job "train" {
  command = ["echo", "hi"]
  inputs = ["s3://data/x.csv?X-Amz-Signature=0123456789"]
}

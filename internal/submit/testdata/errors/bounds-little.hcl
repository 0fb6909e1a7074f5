job "train" {
  command   = ["echo", "hi"]
  file_size = "100B"
}

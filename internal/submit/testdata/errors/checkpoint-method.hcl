job "train" {
  command = ["/bin/echo"]
  checkpoint {
    method = "criu"
  }
}

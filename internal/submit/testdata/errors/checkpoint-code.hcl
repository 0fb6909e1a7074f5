job "train" {
  command = ["/bin/echo"]
  checkpoint {
    exit_code = 85
  }
}

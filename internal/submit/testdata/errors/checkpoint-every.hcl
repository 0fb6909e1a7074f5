job "train" {
  command = ["/bin/echo"]
  checkpoint {
    every = "2s"
  }
}

job "train" {
  command = ["/bin/echo"]
  checkpoint {
    every = "sometimes"
  }
}

job "train" {
  command = ["/bin/echo"]
  checkpoint {
    method = "self"
    signal = "KILL"
  }
}

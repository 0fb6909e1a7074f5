job "ring" {
  command = ["/bin/echo"]
  count   = 2
  gang    = true
  checkpoint {
    every = "30m"
  }
}

job "ring" {
  command = ["/bin/echo"]
  count   = 2
  gang    = true
  checkpoint {
    method = "self"
    signal = "USR2"
  }
}

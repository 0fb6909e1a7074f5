job "ring" {
  command = ["/bin/echo"]
  count   = 2
  gang    = true
  led     = true
  checkpoint {
    method    = "self"
    exit_code = 85
  }
}

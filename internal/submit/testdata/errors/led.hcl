job "mpi" {
  command = ["true"]
  count   = 4
  gang    = 2
  led     = true
}

job "mpi" {
  command = ["true"]
  count   = 4
  apart   = true
}

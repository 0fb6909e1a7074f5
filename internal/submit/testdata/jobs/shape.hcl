job "mpi" {
  command   = ["true"]
  count     = 4
  gang      = true
  apart     = true
  exclusive = true
  together  = "Rack"
}

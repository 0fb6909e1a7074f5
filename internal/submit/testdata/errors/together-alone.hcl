job "mpi" {
  command  = ["true"]
  count    = 4
  together = "Rack"
}

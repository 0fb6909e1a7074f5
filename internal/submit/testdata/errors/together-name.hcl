job "mpi" {
  command  = ["true"]
  count    = 4
  gang     = true
  together = "my rack"
}

job "train" {
  command = ["/bin/echo"]
  checkpoint {
    before_walltime = true
  }
}

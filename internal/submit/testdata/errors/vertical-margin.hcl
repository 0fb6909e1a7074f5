job "web" {
  command = ["/bin/echo"]
  service {}
  vertical_autoscale {
    max_cpus = 4
    margin   = "half"
  }
}

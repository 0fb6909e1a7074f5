job "web" {
  command = ["/bin/echo"]
  service {}
  vertical_autoscale {
    min_cpus = 1
  }
}

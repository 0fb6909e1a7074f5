job "web" {
  command = ["/bin/echo"]
  vertical_autoscale {
    max_cpus = 4
  }
}

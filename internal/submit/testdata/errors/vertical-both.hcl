job "web" {
  command = ["/bin/echo"]
  service {}
  autoscale {
    max = 4
    cpu = "70%"
  }
  vertical_autoscale {
    max_cpus = 4
  }
}

job "web" {
  command  = ["/bin/echo", each.key]
  for_each = ["a", "b"]
  service {}
  vertical_autoscale {
    max_cpus = 4
  }
}

job "model" {
  command = ["/bin/echo"]
  service { }
  vertical_autoscale {
    min_cpus   = 0.5
    max_cpus   = "3500m"
    min_memory = "100MiB"
    max_memory = "8GiB"
    window     = "30m"
    every      = "5m"
    margin     = "10%"
  }
}

job "memory" {
  command = ["/bin/echo"]
  service { }
  vertical_autoscale {
    max_memory = "8GiB"
  }
}

alloc "web" {
  cpus = 2
}

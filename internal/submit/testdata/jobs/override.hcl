job "a" {
  command = ["true"]
  count = 4
  memory = "1GiB"
  override {
    tasks = "1-2"
    memory = "8GiB"
    requirements = machine.cpus >= 4
  }
  override {
    tasks = [2]
    memory = "16GiB"
    cpus = 2
  }
}

# How a task is treated on its machine; see RESOURCES in roost-job(5).
job "copy" {
  command = ["sh", "-c", "dd if=/dev/zero of=data bs=1M count=64 && sync data"]

  # A part of the machine's disk and network, on machines that state how much they have.
  disk_io = "50MB/s"
  network = "100Mbit/s"

  # It may use memory beyond these 512 MiB while the machine has it idle, and is the first
  # to leave when memory runs out.
  memory       = "512MiB"
  memory_slack = true
}

job "timing" {
  command = ["sh", "-c", "for i in $(seq 100000); do :; done"]
  cpus    = 2

  # Its run time is to depend on nobody else: physical cores of one NUMA node to itself,
  # one hardware thread of each, and no time beyond what it asks for.
  cores            = "whole"
  threads_per_core = 1
  numa             = "one"
  cpu_slack        = false
}

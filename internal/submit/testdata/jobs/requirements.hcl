variable "need" {
  default = "4GiB"
}
locals {
  archs = ["x86_64", "aarch64"]
}
job "a" {
  command = ["true"]
  requirements = machine.memory >= var.need && contains(local.archs, machine.arch) && !(machine.load_avg > 0.5 || startswith(machine.name, "gpu"))
  rank = machine.cpus * 2 - (machine.disk >= "1TiB" ? 1 : 0)
}
job "b" {
  command = ["true"]
  requirements = "TARGET.Memory >= 4096 && HasGpfs"
  rank = 5
}
job "c" {
  command = ["true"]
  for_each = { small = "1GiB", big = "64GiB" }
  requirements = machine.totalMemory > each.value && machine.has_gpfs
}
job "d" {
  command = ["true"]
  requirements = regex("^n[0-9]+$", machine.host) && "${machine.os}-${machine.arch}" == "LINUX-X86_64" && 2 <= machine.cpus - 1
}

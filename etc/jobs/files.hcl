# A task for each file that a pattern matches, on a machine of a minimum size. Large files
# get more memory.
job "lines" {
  for_each = files("*.hcl")
  command  = ["wc", "-l", each.value]
  inputs   = [each.value]
  stdout   = "${each.value}.lines"

  requirements = machine.arch == "x86_64" && machine.total_memory >= "1GiB"

  override {
    tasks  = [0]
    memory = "512MiB"
  }
}

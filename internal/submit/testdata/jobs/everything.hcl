# --var name=world --var list=[1, 2]
variable "name" {}
variable "list" {
  type = list(number)
}
job "all" {
  command = concat(["echo", var.name], [for n in var.list : "n${n}"])
  getenv = ["PRICE"]
  environment = merge({ A = "1" }, { B = "x" })
  inputs = { "p.json" = "/shared/params.json", "n" = "../notes.txt" }
  outputs = ["out", "*.log"]
  stdin = "a.csv"
  stdout = "~/o.txt"
  join_output = true
  directory = "data"
  transfer = "always"
  cpus = "500m"
  memory = "100MB"
  disk = "1GiB"
  gpus = 1
  walltime = "01:00:00"
  band = "free"
  priority = -5
  group = "physics.optics"
  limits = ["Matlab", "ansys:2"]
  spread = "Rack"
  packages = ["gcc-12", "r-4.4"]
  prefer = [machine.has_ssd, "TARGET.Speed > 2"]
  retries = 2
  lease = "1h"
  notice = "5s"
  start_after = "18:00"
  labels = { team = "x", run = 3 }
  umask = "027"
  max_running = 1
  hold = true
  unix_group = "staff"
  rerunnable = false
}

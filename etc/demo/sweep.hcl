# A parameter sweep: the Lyapunov exponent of the logistic map x -> r x (1 - x) for 32 values of r.
# Below zero the map settles down; above zero it is chaotic.

job "lyapunov" {
  for_each   = range(2.8, 4.0, 0.0375)
  executable = "./lyapunov.sh"
  arguments  = [each.value]
  stdout     = "results/${task.index}.txt"

  cpus     = 1
  memory   = "64MiB"
  walltime = "5m"
}

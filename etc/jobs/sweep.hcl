# A parameter sweep: one task for each combination. Try --var scale=10.
variable "scale" {
  type        = number
  default     = 1
  description = "multiplies every result"
}

job "sweep" {
  for_each = matrix({ a = range(1, 5), b = [10, 20, 30, 40] })

  script = <<-END
    echo $(( ${each.value.a} * ${each.value.b} * ${var.scale} ))
  END

  cpus     = 0.5
  memory   = "64MiB"
  walltime = "10m"
  stdout   = "sweep.${task.index}.out"
  retries  = 1
}

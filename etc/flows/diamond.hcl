# A diamond in HCL: B and C run when A is done, and D when both are.
#   roost flow submit diamond.hcl

flow "diamond" {
  max_jobs = 2 # at a time

  defaults {
    retry = 2
    vars  = { seconds = 1 }
  }

  node "A" { job = job.step }

  node "B" {
    job   = job.step
    after = [node.A]
  }

  node "C" {
    job   = job.step
    after = [node.A]
    vars  = { seconds = 2 }
  }

  node "D" {
    job   = job.step
    after = [node.B, node.C]
  }
}

job "step" {
  command     = ["/bin/sh", "-c", "echo node $NODE; sleep $SECONDS_TO_SLEEP"]
  environment = { NODE = var.JOB, SECONDS_TO_SLEEP = var.seconds }
  stdout      = "${var.JOB}.out"
  join_output = true
  memory      = "32MiB"
}

# A sweep of twelve steps, at most four at a time, a reduction of their results, and a last
# node that runs in any case.
#   roost flow submit sweep.hcl

locals {
  steps = range(1, 13)
}

flow "sweep" {
  category "step" { max_jobs = 4 }

  node "step" {
    for_each = local.steps
    category = "step"
    retry    = 3
    vars     = { x = each.value }

    job {
      command     = ["/usr/bin/expr", var.x, "*", var.x]
      stdout      = "step.${var.x}.out"
      memory      = "32MiB"
    }
  }

  node "sum" {
    after = [node.step] # all of them

    job {
      script = <<-END
        cat step.*.out | paste -sd+ | xargs echo
      END
      inputs = [for x in local.steps : "step.${x}.out"]
      stdout = "sweep.out"
      memory = "32MiB"
    }
  }

  node "report" {
    after = [{ id = node.sum, when = "afterany" }] # also if it has failed
    vars  = { flow = "sweep" }

    job {
      command = ["/bin/sh", "-c", "echo ${var.flow} is over"]
      memory  = "32MiB"
    }
  }
}

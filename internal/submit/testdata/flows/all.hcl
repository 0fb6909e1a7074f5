variable "days" { default = 2 }

locals { seconds = 3 }

flow "all" {
  max_jobs        = 10
  max_idle        = 100
  depth_first     = true
  always_run_post = true

  category "big" { max_jobs = var.days }
  category "+all flows" { max_jobs = 7 }

  defaults {
    retry       = 3
    unless_exit = 2
    vars        = { color = "red", n = 1 }
    category    = "big"
  }

  provisioner "prepare" { job = "prepare.hcl" }
  service "watch" { job = "watch.sub" }
  final "clean" {
    job  = job.step
    post = "./clean.sh $DAG_STATUS"
  }

  node "A" {
    job       = "a.hcl"
    directory = "sub dir"
    noop      = true
    pre       = ["./pre.sh", "$NODE"]
    pre_skip  = 3
    vars      = { color = "dark \"blue\" \\", "My.Project" = "x" }
  }

  node "B" {
    for_each     = { x = 1, y = local.seconds }
    job          = job.step
    after        = [node.A]
    priority     = each.value
    append_vars  = { n = each.key }
    tolerance    = "10%"
    fail_fast    = true
    abort_on     = 4
    abort_return = 1

    post {
      command      = "./post.sh $RETURN"
      defer_exit   = 5
      defer_after  = "1m"
      debug        = "post.log"
      debug_output = "stderr"
    }
  }

  node "C" {
    for_each  = range(2)
    after     = [node.B, "A", node.inner]
    after_any = [node.sub]
    job {
      command = ["echo", var.n, local.seconds]
    }
  }

  node "D" {
    after = [node.B["y"], node.C[1], { id = node.C[0], when = "afterany" }, "inner+X"]
    done  = true
    job   = "d.hcl"
    save_point = "d.save"
  }

  subflow "sub" {
    file      = "sub.hcl"
    retry     = 1
    tolerance = 0
  }
  splice "inner" {
    file    = "inner.hcl"
    after   = [node.A]
    connect = ["other"]
  }
  splice "other" { file = "inner.hcl" }
}

job "step" { command = ["echo", var.color, var.JOB] }

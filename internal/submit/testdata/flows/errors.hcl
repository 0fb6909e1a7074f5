max_jobs = 3

flow "errors" {
  max_jobs = -1
  maxjobs  = 2

  node "A" { job = job.stepp }
  node "A" { job = job.step }
  node "B" {
    job    = "b.hcl"
    after  = [node.Aa, "C+x", "none", 3, { id = node.A, when = "afternotok" }]
    retries = 3
  }
  node "C" {
    job         = "c.hcl"
    unless_exit = 3
    fail_fast   = true
    pre         = ["./my script.sh"]
    vars        = { "queue x" = 1, text = "a\nb" }
    after       = ["Z", node.C]
  }
  node "D" {}
  node "E" {
    for_each = ["a b"]
    job      = "e.hcl"
    priority = each.valeu
  }
  node "F" {
    for_each = { "a b" = 1 }
    job      = "f.hcl"
  }
  node "G" {
    job = "g.hcl"
    job { command = ["true"] }
    post { defer_exit = 3 }
  }
  final "Z" {
    job   = job.step
    retry = 3
  }
  category "big" {}
  subflow "S" {}
}

flow "again" {}
jobs "x" {}
job "step" { command = ["true"] }

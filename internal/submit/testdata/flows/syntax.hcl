flow "x" {
  node "A" { job = "a.hcl
}

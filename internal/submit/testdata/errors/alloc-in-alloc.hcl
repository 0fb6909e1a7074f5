alloc "big" { count = 1 }
alloc "web" {
  count = 1
  in    = alloc.big
}

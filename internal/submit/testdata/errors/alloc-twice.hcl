alloc "web" { count = 1 }
alloc "web" { count = 2 }

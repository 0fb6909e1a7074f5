job "grid" {
  executable = "./simulate"
  arguments = ["--lr", each.value.lr, "--depth=${each.value.depth}", "${each.key}", upper("x${each.value.depth}")]
  for_each = matrix({ lr = [0.1, 0.01], depth = range(2, 4) })
  memory = each.value.depth > 2 ? "8GiB" : "4GiB"
  cpus = each.value.depth
  environment = { N = each.value.depth * 2, PRICE = "5$" }
}

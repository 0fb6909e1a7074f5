job "rows" {
  for_each = csvdecode(file("data/a.csv"))
  command = ["echo", each.value.x, each.value.y, each.value.x + each.value.y]
}
job "each-file" {
  for_each = files("data/*.csv")
  command = ["bin/tool", each.value]
  inputs = [each.value]
  stdout = "${basename(each.value)}.out"
}

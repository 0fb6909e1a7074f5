job "paths" {
  for_each = ["/shared/params.json", "notes.txt"]
  executable = each.key == "0" ? "echo" : "simulate"
  arguments = concat(["-n"], [each.value], range(2))
  inputs = [each.value]
  stdout = "${each.value}.out"
  stderr = "/dev/null"
}

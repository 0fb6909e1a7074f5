# Made of table.sub, which was written for HTCondor, by roost translate; see roost-job(5) and
# roost-coming-from(7).
#
# Not carried over:
#   line 5: request_memory = $(size)
#       job 2: "300 and more" is no size such as 4GB: an expression cannot be asked for.
#
# Different here:
#   line 18: output = two
#       Each task needs a file of its own: its number was added.
#   line 22: queue arg1, arg2 from list.txt
#       The lines of the file are split at commas and blanks; every line has to have as many parts as there
#       are variables.

job "table" {
  for_each = [
    { name = "alpha", size = "100" },
    { name = "beta", size = "200" },
    { name = "gamma", size = "300 and more" },
  ]

  executable = "/bin/echo"
  arguments  = ["${each.value.name}", "\"quoted\"", "7", "${each.value.size}"]

  stdout = "out/${each.value.name}-${task.index}.txt"

  checkpoint {
    method    = "self"
    exit_code = 85
    files     = ["state", "log.txt"]
  }
}

job "table-2" {
  for_each = matrix({ item = ["a", "b", "c"], step = range(2) })

  executable = "/bin/echo"
  arguments  = ["second", "${each.value.step}", "${floor(task.index / 2)}", "${each.value.item}"]

  stdout = "two.${task.index}"

  memory = "200MiB"

  checkpoint {
    method    = "self"
    exit_code = 85
    files     = ["state", "log.txt"]
  }
}

job "table-3" {
  count = 3

  executable = "/bin/echo"
  arguments  = ["second", "${task.index}", "0"]

  stdout = "two.${task.index}"

  memory = "200MiB"

  checkpoint {
    method    = "self"
    exit_code = 85
    files     = ["state", "log.txt"]
  }
}

job "table-4" {
  for_each = [for line in split("\n", trimspace(file("list.txt"))) : zipmap(["arg1", "arg2"], regexall("[^, \t]+", line))]

  executable = "/bin/echo"
  arguments  = ["second", "0", "${task.index}"]

  stdout = "two.${task.index}"

  memory = "200MiB"

  checkpoint {
    method    = "self"
    exit_code = 85
    files     = ["state", "log.txt"]
  }
}
# condor: 4 jobs, 24 carried, 1 lost, 2 differ

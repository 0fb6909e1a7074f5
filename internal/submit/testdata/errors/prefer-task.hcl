job "a" {
  command = ["true"]
  count = 2
  prefer = [machine.rack == task.index]
}

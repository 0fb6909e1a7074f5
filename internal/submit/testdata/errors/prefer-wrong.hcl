job "a" {
  command = ["true"]
  prefer = [machine.has_ssd, "TARGET.Speed >"]
}

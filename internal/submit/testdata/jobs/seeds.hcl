job "seeds" {
  command = ["python3", "train.py", "--seed=${task.index}", "$HOME", "--of=${task.count}"]
  count = 4
  cpus = 0.5
  memory = "1.5GiB"
  walltime = "1h30m"
  stdout = "logs/out.${task.index}"
  inputs = ["data/*.csv", "/shared/params.json"]
  outputs = ["model.${task.index}.bin"]
}

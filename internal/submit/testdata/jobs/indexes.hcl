job "marked" {
  command     = ["echo", each.value, 2 * each.value, "${task.index} of ${task.count}"]
  indexes     = "10-20:5"
  stdout      = "marked.o${task.job}.${each.value}"
  stderr      = "${each.key}/${task.job}.err"
  environment = { JOB = task.job, PATH_OF = "x/${task.job}" }
}

job "plain" {
  script  = "echo ${each.value} of job ${task.job}"
  indexes = "0-2"
  stdout  = "${task.job}/${each.value}"
}

job "single" {
  command = ["echo", "job ${task.job}"]
  stdout  = "single.o${task.job}"
}

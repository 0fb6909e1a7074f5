job "last" {
  command = ["true"]
  depends_on = [job.middle, { id = job.first, when = "afterany" }, "77", "after:78.host"]
}
job "middle" {
  command = ["true"]
  depends_on = job.first
}
job "first" {
  command = ["true"]
}

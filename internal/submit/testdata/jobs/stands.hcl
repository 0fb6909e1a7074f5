job "waits" {
  command    = ["echo", "hi"]
  depends_on = ["on:2", "afterokarray:12[][3].n1", { id = "13[]", when = "afterstartarray" }, { id = "14", when = "runone" }, "beforeok:15", "synccount:1", { id = job.other, when = "syncwith" }]
}

job "other" {
  command = ["echo", "hi"]
}

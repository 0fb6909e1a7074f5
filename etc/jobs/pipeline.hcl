# Three jobs in sequence; the last one cleans up whatever the results of the others.
job "prepare" {
  script = "seq 1 100 > numbers.txt"
}

job "count" {
  count      = 4
  depends_on = [job.prepare]
  script     = <<-END
    awk -v part="$1" 'NR % 4 == part { sum += $1 } END { print sum }' numbers.txt
  END
  arguments  = [task.index]
  stdout     = "part.${task.index}.txt"
}

job "total" {
  depends_on = [{ id = job.count, when = "afterany" }]
  script     = "cat part.*.txt | awk '{ sum += $1 } END { print sum }'"
}

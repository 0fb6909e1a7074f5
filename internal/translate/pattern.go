package translate

// jobNumber appends the number of the job to the name of a file.
func jobNumber(out text) text { return append(out, piece{expr: "task.job"}) }

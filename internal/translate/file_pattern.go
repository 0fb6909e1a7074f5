package translate

// appendJobNumber appends the job's number to a file name.
func appendJobNumber(out templateText) templateText {
	return append(out, templatePiece{expr: "task.job"})
}

package translate

// appendJobNumber appends the number of the job to the name of a file.
func appendJobNumber(out templateText) templateText {
	return append(out, templatePiece{expr: "task.job"})
}

package translate

const noNumber = "The number of the job is not known in a job file, and is left out of the name: the next run of the file writes over what this one has written."

// jobNumber appends the number of the job to the name of a file.
func jobNumber(out text, p interface{ remark(string) }) text {
	p.remark(noNumber)
	return trimmed(out)
}

package importlint

// allowedNames are identifiers that contain a retired word all the same, and why.
func allowedNames() map[string]string {
	const (
		pbs     = "qsub -k of PBS says keep"
		setting = "a setting of the node file"
	)
	return map[string]string{
		"AttrKeepEmptyFiles": "an attribute of job ads, on disk and on the wire",
		"KeepFiles":          pbs,
		"setKeep":            pbs,
		"keepOnNode":         pbs,
		"keepFiles":          "flags of the same name",
		"KeepHistory":        setting,
		"KeepCompleted":      setting,
		"KeepScript":         "a method of the wire protocol",
		"Keep":               "pbs_release_nodes -k of PBS",
		"Boxed":              "a key of the claim file",
		"labelBox":           "the rectangle around a label of a chart",
	}
}

// allowedFolders are folders with more files than others, and why.
func allowedFolders() map[string]string {
	return map[string]string{
		"classad": "one language: lexer, parser, printer, evaluator, compiler and some forty families of functions",
	}
}

// allowedWidths are files with lines that are too wide, and why.
func allowedWidths() map[string]string {
	const data = "lines of CSV as the program reads and prints them"
	return map[string]string{
		"internal/cli/sim/live_test.go":            data,
		"internal/cli/sim/pack_test.go":            data,
		"internal/cli/sim/run_test.go":             data,
		"internal/cli/sim/sim_test.go":             data,
		"internal/sim/workload/from_trace_test.go": data,
	}
}

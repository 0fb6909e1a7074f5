package submit

import "github.com/roost-batch/roost/internal/submit/jobspec"

// What this package makes of a job file, and what it needs to know for that.
type (
	Job          = jobspec.Job
	TaskColumn   = jobspec.TaskColumn
	ParseOptions = jobspec.ParseOptions
	FileAccess   = jobspec.FileAccess
	JobDefaults  = jobspec.JobDefaults
	JobFlags     = jobspec.JobFlags
)

// EscapeLiteral doubles the dollar signs of a text, see jobspec.EscapeLiteral.
func EscapeLiteral(s string) string { return jobspec.EscapeLiteral(s) }

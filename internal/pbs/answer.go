package pbs

import (
	"strings"

	"github.com/roost-batch/roost"
)

// Answer puts a schedd's refusal of a job into PBS's words, with PBS's exit status: clients test for both. The schedd's own words follow, for they say
// what to do. Of other failures ok is false.
func Answer(kind roost.Kind, text string) (refusal *Error, ok bool) {
	words, code := "", 0
	switch ofQueue := strings.HasPrefix(text, "queue "); {
	case strings.HasPrefix(text, "dependency "):
		words, code = "Invalid Job Dependency", exitDependency
	case ofQueue && kind == roost.NotFound:
		words, code = "Unknown queue", exitNoQueue
	case ofQueue && kind == roost.Conflict && strings.HasSuffix(text, "it takes no jobs now"):
		words, code = "Queue is not enabled", exitDisabled
	case ofQueue && kind == roost.PermissionDenied:
		words, code = "Access to queue is denied", exitNoAccess
	case ofQueue && kind == roost.Exhausted && strings.Contains(text, " a task asks for "):
		words, code = "Job violates queue and/or server resource limits", exitLimits
	case kind == roost.Exhausted && (strings.Contains(text, " queued") || strings.Contains(text, " in it and not done")):
		words, code = "Maximum number of jobs already in queue", exitTooMany
	case kind == roost.NotFound, ofQueue && kind == roost.Conflict:
		words, code = "Illegal attribute or resource value", exitIllegalValue
	default:
		return nil, false
	}
	return refuse(words+": "+text, code), true
}

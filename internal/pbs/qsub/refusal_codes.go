package qsub

import (
	"regexp"
	"strings"

	"github.com/roost-batch/roost"
)

// RefusalFor returns a schedd's refusal of a job in PBS's words, with PBS's exit status,
// because clients test for both. The schedd's own text follows, since it says what to do.
// For other errors ok is false.
func RefusalFor(kind roost.ErrorKind, text string) (refusal *RefusalError, ok bool) {
	words, code := "", 0
	switch ofQueue := strings.HasPrefix(text, "queue "); {
	case kind == roost.Exhausted && strings.Contains(text, ": none of its destinations takes the job"):
		words, code = "Job rejected by all possible destinations", exitRouteRejected
	case kind == roost.Exhausted && strings.Contains(text, ": an array of "):
		words, code = "Array job exceeds server or queue size limit", exitArray
	case kind == roost.PermissionDenied && strings.Contains(text, "jobs of root and of system users"):
		words, code = "Bad UID for job execution", exitBadUser
	case strings.HasPrefix(text, "unix group "):
		words, code = "Bad GID for job execution", exitBadGroup
	case strings.HasPrefix(text, "dependency "):
		words, code = "Invalid Job Dependency", exitDependency
	case kind == roost.NotFound && strings.HasPrefix(text, "limit "):
		words, code, text = "Unknown resource", exitUnknown, strings.TrimPrefix(text, "limit ")
	case kind == roost.NotFound && (ofQueue || strings.HasPrefix(text, "reservation ")):
		words, code = "Unknown queue", exitNoQueue
	case ofQueue && kind == roost.Conflict && strings.HasSuffix(text, "it takes no jobs now"):
		words, code = "Queue is not enabled", exitDisabled
	case strings.HasPrefix(text, "pool: ") && kind == roost.PermissionDenied && strings.Contains(text, "acl_hosts"):
		words, code = "Access from host not allowed, or unknown host", exitBadHost
	case strings.HasPrefix(text, "pool: ") && kind == roost.PermissionDenied:
		words, code = "Unauthorized Request", exitNotAllowed
	case ofQueue && kind == roost.PermissionDenied:
		words, code = "Access to queue is denied", exitNoAccess
	case kind == roost.Exhausted && (strings.Contains(text, " a task asks for ") ||
		strings.Contains(text, " parts together ask for ")):
		words, code = "Job violates queue and/or server resource limits", exitLimits
	case kind == roost.Exhausted && parseLimitRefusal().MatchString(text):
		words, code = limitErrorText(parseLimitRefusal().FindStringSubmatch(text))
	case kind == roost.Exhausted && strings.Contains(text, " queued"):
		words, code = "Maximum number of jobs already in queue", exitTooMany
	case kind == roost.NotFound, ofQueue && kind == roost.Conflict:
		words, code = "Illegal attribute or resource value", exitIllegalValue
	default:
		return nil, false
	}
	return refusalf(words+": "+text, code), true
}

// parseLimitRefusal matches the negotiator's refusal because of a limit of a queue or the
// pool.
func parseLimitRefusal() *regexp.Regexp {
	return regexp.MustCompile(
		`^limit reached: (?:queue (\S+)|pool): .* and not done, .* is the most of (all|a|)\s?(user|group|Unix group|)\s?(.*)$|` +
			`^limit reached: (?:queue (\S+)|pool): tasks.* ask for \S+ of (\S+), .* is the most of (all|a|)\s?(user|group|Unix group|)\s?(.*)$`,
	)
}

// limitErrorText returns OpenPBS's text for it. For a limit of each user OpenPBS names
// the queue generic, whatever the queue's name is.
func limitErrorText(m []string) (words string, code int) {
	queue, each, of, name, resource := m[1], m[2], m[3], m[4], ""
	if m[6] != "" {
		queue, resource, each, of, name = m[5], m[6], m[7], m[8], m[9]
	}
	kind := map[string]string{"user": "user", "group": "project", "Unix group": "group"}[of]
	where, owner := "complex", "complex"
	if queue != "" {
		where, owner = "queue "+queue, "queue "+queue
	}
	if queue != "" && kind == "user" {
		owner = "queue generic"
	}
	switch {
	case resource != "" && each == "all":
		return "would exceed limit on resource " + resource + " in " + where, exitAmount
	case resource != "" && each == "a":
		return "would exceed per-" + kind + " limit on resource " + resource + " in " + where, exitAmount
	case resource != "":
		return "would exceed " + kind + " " + name + "'s limit on resource " + resource + " in " + where, exitAmount
	case each == "all":
		return "Maximum number of jobs already in " + where, exitTooMany
	case each == "a":
		return "would exceed " + owner + "'s per-" + kind + " limit", exitCount
	}
	return "Maximum number of jobs for " + kind + " " + name + " already in " + where, exitCount
}

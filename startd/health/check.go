package health

import "time"

// CheckKind is how a check finds out whether an attempt works.
type CheckKind uint8

// The kinds of checks.
const (
	HTTPCheck CheckKind = iota // a request is answered with a status from 200 to 399
	TCPCheck                   // a connection is accepted
	ExecCheck                  // a command in the task's sandbox exits with 0
)

// String returns the name of the kind as job files have it.
func (k CheckKind) String() string { return [...]string{"http", "tcp", "exec"}[k] }

// Check is one check of an attempt.
type Check struct {
	Name        string
	Kind        CheckKind
	IsLive      bool // failures end the attempt; false: they only make it unready
	Every       time.Duration
	Timeout     time.Duration
	Fails       int // failures in a row after which the check has failed
	Passes      int // passes in a row after which it has passed
	StartWithin time.Duration
	Port        string // name of the task's port, for HTTP and TCP
	Path        string // for HTTP
	Method      string
	Headers     []string // "Name: value"
	Command     []string // for exec
}

// forgivenResults is how many results may fail after the start and do not count.
func (c *Check) forgivenResults() int {
	if c.Every <= 0 {
		return 0
	}
	return int((c.StartWithin + c.Every - 1) / c.Every)
}

// maxStartResults is after how many results the check must have passed for the first
// time.
func (c *Check) maxStartResults() int { return c.forgivenResults() + c.Fails + c.Passes }

// Outcome is how one run of a check ended.
type Outcome uint8

// The outcomes.
const (
	Passed Outcome = iota
	Failed
	Unknown // the prober was late, or the task stood still: it says nothing
)

// String returns the outcome as metrics have it.
func (o Outcome) String() string { return [...]string{"passed", "failed", "unknown"}[o] }

// Result is the outcome of one run of a check.
type Result struct {
	Outcome Outcome
	Detail  string // why it failed, or says nothing, for people
}

// Judge returns the result of a run that failed. It is unknown if the prober itself was
// late by more than half of the timeout: then the delay may be ours and not the task's.
func Judge(c *Check, lateness time.Duration, detail string) Result {
	if lateness > c.Timeout/2 {
		return Result{Outcome: Unknown, Detail: "the prober was late"}
	}
	return Result{Outcome: Failed, Detail: detail}
}

package cli

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost/internal/wire"
)

// What PBS says of how a job ended: its exit status, and its comment.

// exceeded are PBS's exit statuses for a job that used more of a resource than it may (OpenPBS: JOB_EXEC_KILL_…), and what it calls that resource.
func exceeded(c wire.Cause) (status int, resource string) {
	switch c {
	case wire.Cause_CAUSE_WALLTIME:
		return -29, "walltime"
	case wire.Cause_CAUSE_CPU_TIME:
		return -28, "cput"
	case wire.Cause_CAUSE_MEMORY:
		return -27, "mem"
	case wire.Cause_CAUSE_VIRTUAL:
		return -26, "vmem"
	}
	return 0, ""
}

// The exit statuses of jobs that were never begun (OpenPBS: JOB_EXEC_FAIL1 and 2).
const (
	neverBegun = -1
	refused    = -2
)

// exitStatus is PBS's: the code, 256 and the signal's number, or a negative number where the batch system ended it or it could not start.
func exitStatus(s *wire.JobStatus) string {
	e := s.GetExit()
	if e == nil {
		if final(s) && s.GetArray() {
			return fmt.Sprint(min(failures(s), 1))
		}
		return ""
	}
	status, _ := exceeded(e.GetCause())
	switch {
	case status != 0:
		return fmt.Sprint(status)
	case e.GetCause() == wire.Cause_CAUSE_LAUNCH:
		return fmt.Sprint(neverBegun)
	case e.GetCause() == wire.Cause_CAUSE_REFUSED:
		return fmt.Sprint(refused)
	case e.GetSignal() != 0:
		return fmt.Sprint(256 + e.GetSignal())
	}
	return fmt.Sprint(e.GetCode())
}

// comment is where and since when a job runs or ran, how it ended, and what to ask for the next time; or why it stands as it does.
func (c *call) comment(s *wire.JobStatus) string {
	if final(s) != (s.GetExit() != nil) || !final(s) && s.GetReason() != "" {
		return s.GetReason()
	}
	text, more := "", s.GetReason()
	if s.GetNode() != "" && s.GetStarted() != 0 {
		text = fmt.Sprintf("Job run at %s on %s", c.ctime(s.GetStarted()), execVnode(s)) + outcome(s)
	}
	if more == "" && final(s) {
		more = strings.Join(rightSize([]sample{sampleOf(s, walltimeOf(s.GetAd()))}), "; ")
	}
	if text != "" && more != "" {
		text += ": "
	}
	return text + more
}

// outcome is how a job ended; nothing while it runs.
func outcome(s *wire.JobStatus) string {
	e := s.GetExit()
	_, resource := exceeded(e.GetCause())
	switch {
	case e == nil:
		return ""
	case resource != "":
		return " and exceeded resource " + resource
	case s.GetRemoved():
		return " and terminated"
	case e.GetCode() != 0 || e.GetSignal() != 0 || e.GetCause() != wire.Cause_CAUSE_EXITED:
		return " and failed"
	}
	return " and finished"
}

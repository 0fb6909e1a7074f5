package cli

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// awaitBlocked waits as -W block=true asks, through restarts of the schedd. The exit
// status is what the job's Exit_status leaves of itself in one byte, and 3 if the job was
// deleted. Who interrupts the wait wants no job: it is deleted (OpenPBS qsub(1B)).
func (c *invocation) awaitBlocked(id, plain string, signals <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	type outcome struct {
		tally *jobProgress
		err   error
	}
	ended := make(chan outcome, 1)
	waiting := *c
	waiting.ctx = ctx
	go func() {
		t, err := waiting.watchJobs(&wire.Selection{Selectors: []string{plain}}, noProgress{})
		ended <- outcome{t, err}
	}()
	select {
	case s := <-signals:
		fmt.Fprintf(c.stderr, "qsub: wait for job %s interrupted by signal %d\n", id, signalNumber(s))
		fmt.Fprintf(c.stdout, "Job %s is being deleted\n", id)
		c.removeInterrupted(plain)
		return exitError(2)
	case o := <-ended:
		if o.err != nil {
			return c.pbsFail(o.err)
		}
		for _, s := range o.tally.jobs { // there is one
			return c.reportBlockedEnd(id, s)
		}
		return kindErrorf(roost.Internal, "the schedd lost sight of the job")
	}
}

// reportBlockedEnd says how a job that was waited for has ended.
func (c *invocation) reportBlockedEnd(id string, s *wire.JobStatus) error {
	if isDeleted(s) {
		why := printableText(s.GetReason())
		if why != "" {
			why = ": " + why
		}
		fmt.Fprintf(c.stderr, "qsub: %s Job deleted%s\n", id, why)
		return exitError(3)
	}
	status, _ := strconv.Atoi(pbsJobExitStatus(s))
	switch code := status & 0xff; {
	case code != 0:
		return exitError(code)
	case status != 0: // it must not look like success
		return exitError(1)
	}
	return nil
}

// isDeleted reports whether a job was ended by somebody's wish; an array, of which
// nothing has come to its end by itself.
func isDeleted(s *wire.JobStatus) bool {
	if !s.GetArray() {
		return s.GetRemoved() || stateOf(s) == roost.Removed.String() ||
			s.GetExit().GetCause() == wire.Cause_CAUSE_REMOVED
	}
	n := s.GetCounts()
	return n[roost.Removed.String()] > 0 && n[roost.Completed.String()] == 0
}

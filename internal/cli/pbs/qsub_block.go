package pbs

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// awaitBlocked waits as -W block=true asks, through restarts of the schedd. The exit
// status is what the job's Exit_status leaves of itself in one byte, and 3 if the job was
// deleted. Who interrupts the wait wants no job: it is deleted (OpenPBS qsub(1B)).
func awaitBlocked(c *frame.Invocation, id, plain string, signals <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	type outcome struct {
		tally *jobs.Progress
		err   error
	}
	ended := make(chan outcome, 1)
	waiting := *c
	waiting.Context = ctx
	go func() {
		t, err := jobs.WatchJobs(&waiting, &scheddapi.Selection{Selectors: []string{plain}}, jobs.NoProgress{})
		ended <- outcome{t, err}
	}()
	select {
	case s := <-signals:
		fmt.Fprintf(c.Stderr, "qsub: wait for job %s interrupted by signal %d\n", id, signalNumber(s))
		fmt.Fprintf(c.Stdout, "Job %s is being deleted\n", id)
		jobs.RemoveInterrupted(c, plain)
		return frame.ExitError(2)
	case o := <-ended:
		if o.err != nil {
			return pbsframe.Fail(c, o.err)
		}
		for _, s := range o.tally.Jobs { // there is one
			return reportBlockedEnd(c, id, s)
		}
		return frame.KindErrorf(roost.Internal, "the schedd lost sight of the job")
	}
}

// reportBlockedEnd says how a job that was waited for has ended.
func reportBlockedEnd(c *frame.Invocation, id string, s *scheddapi.JobStatus) error {
	if isDeleted(s) {
		why := document.PrintableText(s.GetReason())
		if why != "" {
			why = ": " + why
		}
		fmt.Fprintf(c.Stderr, "qsub: %s Job deleted%s\n", id, why)
		return frame.ExitError(3)
	}
	status, _ := strconv.Atoi(pbsJobExitStatus(s))
	switch code := status & 0xff; {
	case code != 0:
		return frame.ExitError(code)
	case status != 0: // it must not look like success
		return frame.ExitError(1)
	}
	return nil
}

// isDeleted reports whether a user or administrator ended a job. An array counts where no
// task has ended by itself.
func isDeleted(s *scheddapi.JobStatus) bool {
	if !s.GetArray() {
		return s.GetRemoved() || document.StateOf(s) == roost.Removed.String() ||
			s.GetExit().GetCause() == scheddapi.Cause_CAUSE_REMOVED
	}
	n := s.GetCounts()
	return n[roost.Removed.String()] > 0 && n[roost.Completed.String()] == 0
}

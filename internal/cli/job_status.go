package cli

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// stateOf says in one word how a job or task stands. A job of several tasks is as far as
// the most advanced of them that has not ended; when all have, it is failed if one
// failed.
func stateOf(s *wire.JobStatus) string {
	n := s.GetCounts()
	if s.GetState() != "" {
		if s.GetState() == roost.Completed.String() && failedExit(s.GetExit()) {
			return "failed"
		}
		return s.GetState()
	}
	for _, state := range [...]roost.TaskState{roost.Running, roost.Starting, roost.Suspended, roost.Exiting,
		roost.Idle, roost.Held, roost.Blocked} {
		if n[state.String()] > 0 {
			return state.String()
		}
	}
	switch {
	case n["failed"] > 0:
		return "failed"
	case n[roost.Completed.String()] > 0:
		return roost.Completed.String()
	case n[roost.Removed.String()] > 0:
		return roost.Removed.String()
	}
	return roost.Idle.String()
}

func stateColour(state string) string {
	switch state {
	case "running", "starting", "exiting":
		return green
	case "held", "suspended", "blocked":
		return yellow
	case "failed":
		return red
	case "completed", "removed":
		return dim
	}
	return ""
}

// finishedCount counts the tasks of a job that will not run again.
func finishedCount(s *wire.JobStatus) int {
	n := s.GetCounts()
	return int(n[roost.Completed.String()] + n[roost.Removed.String()])
}

// isFinal reports whether all tasks of a job, or the task, have ended.
func isFinal(s *wire.JobStatus) bool {
	if state, err := roost.ParseTaskState(s.GetState()); err == nil {
		return state.IsFinal()
	}
	return finishedCount(s) >= int(s.GetTasks())
}

// failedCount counts the tasks of a job that did not succeed.
func failedCount(s *wire.JobStatus) int {
	n := s.GetCounts()
	if s.GetState() != "" {
		if s.GetState() == roost.Removed.String() || s.GetState() == roost.Completed.String() &&
			failedExit(s.GetExit()) {
			return 1
		}
		return 0
	}
	return int(n["failed"] + n[roost.Removed.String()])
}

func failedExit(e *wire.ExitStatus) bool {
	return e != nil && (e.GetCode() != 0 || e.GetSignal() != 0 || e.GetCause() != wire.Cause_CAUSE_EXITED)
}

// taskCode is the exit status of a single task as a shell would give it: its own code,
// 128 and the signal's number, 127 when it could not be started.
func taskCode(s *wire.JobStatus) int {
	e := s.GetExit()
	switch {
	case e.GetSignal() != 0:
		return 128 + int(e.GetSignal())
	case e.GetCode() != 0:
		return int(e.GetCode())
	case e.GetCause() == wire.Cause_CAUSE_LAUNCH:
		return 127
	case failedCount(s) > 0 || e == nil:
		return 1
	}
	return 0
}

// endText says how a task ended.
func endText(e *wire.ExitStatus) string {
	switch {
	case e == nil:
		return ""
	case e.GetReason() != "":
		return printableText(e.GetReason())
	case e.GetSignal() != 0:
		text := fmt.Sprintf("killed by signal %d", e.GetSignal())
		if name := unix.SignalName(unix.Signal(e.GetSignal())); name != "" {
			text = "killed by " + name
		}
		if e.GetCore() {
			text += ", core dumped"
		}
		return text
	}
	return fmt.Sprintf("exit code %d", e.GetCode())
}

// runTimeText is how long a job has run, or ran; and "-" if it has not begun.
func (c *invocation) runTimeText(s *wire.JobStatus) string {
	if e := s.GetExit(); e.GetWall() > 0 && isFinal(s) {
		return spanText(time.Duration(e.GetWall()))
	}
	if s.GetStarted() == 0 {
		return "-"
	}
	end := c.now()
	if s.GetEnded() != 0 {
		end = timeOfNanos(s.GetEnded())
	}
	return spanText(max(end.Sub(timeOfNanos(s.GetStarted())), 0))
}

// countsText lists how many tasks stand where: "12 completed, 3 running, 1 failed".
func countsText(s *wire.JobStatus) string {
	var parts []string
	n := s.GetCounts()
	for _, state := range roost.TaskStateNames() {
		k := n[state]
		if state == roost.Completed.String() {
			k -= min(n["failed"], k)
		}
		if k > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", k, state))
		}
	}
	if n["failed"] > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", n["failed"]))
	}
	return strings.Join(parts, ", ")
}

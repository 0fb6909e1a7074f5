package document

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// StateOf is the state of a job or task in one word. A job of several tasks is as far as
// the most advanced of them that has not ended; when all have, it is failed if one
// failed.
func StateOf(s *scheddapi.JobStatus) string {
	n := s.GetCounts()
	if s.GetState() != "" {
		if s.GetState() == roost.Completed.String() && FailedExit(s.GetExit()) {
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

// FinishedCount counts the tasks of a job that will not run again.
func FinishedCount(s *scheddapi.JobStatus) int {
	n := s.GetCounts()
	return int(n[roost.Completed.String()] + n[roost.Removed.String()])
}

// IsFinal reports whether all tasks of a job, or the task, have ended.
func IsFinal(s *scheddapi.JobStatus) bool {
	if state, err := roost.ParseTaskState(s.GetState()); err == nil {
		return state.IsFinal()
	}
	return FinishedCount(s) >= int(s.GetTasks())
}

// FailedCount counts the tasks of a job that did not succeed.
func FailedCount(s *scheddapi.JobStatus) int {
	n := s.GetCounts()
	if s.GetState() != "" {
		if s.GetState() == roost.Removed.String() || s.GetState() == roost.Completed.String() &&
			FailedExit(s.GetExit()) {
			return 1
		}
		return 0
	}
	return int(n["failed"] + n[roost.Removed.String()])
}

// FailedExit reports whether a task did not end by itself with the exit code of success.
// That is 0 unless its job has another.
func FailedExit(e *scheddapi.ExitStatus) bool {
	return e != nil && (e.GetCode() != e.GetSuccessCode() ||
		e.GetSignal() != 0 || e.GetCause() != scheddapi.Cause_CAUSE_EXITED)
}

// TaskCode is the exit status of a task as a shell gives it. It is the task's own code,
// 128 and the number of a signal, or 127 where it could not start. It is 0 of a task
// that has succeeded with another code.
func TaskCode(s *scheddapi.JobStatus) int {
	e := s.GetExit()
	switch {
	case e.GetSuccessCode() != 0 && !FailedExit(e) && FailedCount(s) == 0:
		return 0
	case e.GetSignal() != 0:
		return 128 + int(e.GetSignal())
	case e.GetCode() != 0:
		return int(e.GetCode())
	case e.GetCause() == scheddapi.Cause_CAUSE_LAUNCH:
		return 127
	case FailedCount(s) > 0 || e == nil:
		return 1
	}
	return 0
}

// EndText says how a task ended.
func EndText(e *scheddapi.ExitStatus) string {
	switch {
	case e == nil:
		return ""
	case e.GetReason() != "":
		return PrintableText(e.GetReason())
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
	if n := e.GetSuccessCode(); n != 0 && n != e.GetCode() {
		return fmt.Sprintf("exit code %d, and success is %d", e.GetCode(), n)
	}
	return fmt.Sprintf("exit code %d", e.GetCode())
}

// CountsText counts the tasks of a job by state: "12 completed, 3 running, 1 failed".
func CountsText(s *scheddapi.JobStatus) string {
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

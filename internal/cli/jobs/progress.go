package jobs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// Progress sums up the jobs that a command waits for.
type Progress struct {
	Jobs       map[string]*scheddapi.JobStatus
	order      []string
	failedTask *scheddapi.JobStatus // a task that failed
	heldJob    *scheddapi.JobStatus // a job that somebody has to release
}

func newJobProgress() *Progress { return &Progress{Jobs: map[string]*scheddapi.JobStatus{}} }

// applyUpdate takes in what a watch says.
func (t *Progress) applyUpdate(e *scheddapi.WatchEvent) {
	if s := e.GetStatus(); s != nil {
		if t.Jobs[s.GetId()] == nil {
			t.order = append(t.order, s.GetId())
		}
		t.Jobs[s.GetId()] = s
		if holdReason(s) != "" {
			t.heldJob = s
		} else if t.heldJob.GetId() == s.GetId() {
			t.heldJob = nil
		}
	}
	if f := e.GetFailed(); len(f) > 0 {
		t.failedTask = f[len(f)-1]
	}
}

// idSelection is by id what was chosen by sel, so that it stays the same.
func (t *Progress) idSelection(sel *scheddapi.Selection) *scheddapi.Selection {
	if len(t.order) == 0 {
		return sel
	}
	return &scheddapi.Selection{Selectors: slices.Clone(t.order)}
}

func (t *Progress) totals(count func(*scheddapi.JobStatus) int) (n int) {
	for _, s := range t.Jobs {
		n += count(s)
	}
	return n
}

func (t *Progress) taskCount() int {
	return t.totals(func(s *scheddapi.JobStatus) int { return max(int(s.GetTasks()), 1) })
}

func (t *Progress) doneCount() int {
	return t.totals(func(s *scheddapi.JobStatus) int {
		if len(s.GetCounts()) == 0 && document.IsFinal(s) {
			return 1
		}
		return document.FinishedCount(s)
	})
}

func (t *Progress) failedCount() int { return t.totals(document.FailedCount) }

func (t *Progress) runningCount() int {
	return t.totals(func(s *scheddapi.JobStatus) int {
		n := s.GetCounts()
		return int(n["running"] + n["starting"] + n["exiting"])
	})
}

func (t *Progress) heldCount() int {
	return t.totals(func(s *scheddapi.JobStatus) int { return int(s.GetCounts()["held"]) })
}

func (t *Progress) openCount() int {
	return t.totals(func(s *scheddapi.JobStatus) int {
		if document.IsFinal(s) {
			return 0
		}
		return 1
	})
}

// exitStatus is the exit status: of a single task, its own; else 1 if any task failed.
func (t *Progress) exitStatus() int {
	if len(t.Jobs) == 1 {
		if s := t.Jobs[t.order[0]]; s.GetTasks() <= 1 {
			return document.TaskCode(s)
		}
	}
	if t.failedCount() > 0 {
		return 1
	}
	return 0
}

// title names the jobs in at most width characters, 0 for no bound. An id is never cut.
func (t *Progress) title(width int) string {
	if len(t.order) == 1 {
		s := t.Jobs[t.order[0]]
		name := document.PrintableText(s.GetName())
		if width > 0 {
			name = frame.TruncateText(name, width-frame.TextWidth(s.GetId())-1)
		}
		return strings.TrimSpace(s.GetId() + " " + name)
	}
	return document.Plural(len(t.order), "job")
}

// String sums up all jobs in one line: "3 of 4 tasks done, 1 running".
func (t *Progress) String() string {
	parts := []string{fmt.Sprintf("%d of %s done", t.doneCount(), document.Plural(t.taskCount(), "task"))}
	for _, p := range []struct {
		n    int
		what string
	}{{t.runningCount(), "running"}, {t.heldCount(), "held"}, {t.failedCount(), "failed"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

// holdReason says why a job is held, if it is and somebody gave a reason.
func holdReason(s *scheddapi.JobStatus) string {
	if document.StateOf(s) != "held" || s.GetReason() == "" {
		return ""
	}
	return s.GetId() + ": " + document.PrintableText(s.GetReason())
}

// failureText is a line about a task that failed.
func failureText(s *scheddapi.JobStatus) string {
	text := s.GetId() + ": " + document.EndText(s.GetExit())
	if s.GetExit() == nil {
		text = s.GetId() + ": " + document.StateOf(s)
		if s.GetReason() != "" {
			text += ": " + document.PrintableText(s.GetReason())
		}
	}
	if s.GetNode() != "" {
		text += " on " + s.GetNode()
	}
	return text
}

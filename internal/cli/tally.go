package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost/internal/wire"
)

// tally sums up the jobs that are waited for.
type tally struct {
	jobs   map[string]*wire.JobStatus
	order  []string
	sample *wire.JobStatus // a task that failed
	stuck  *wire.JobStatus // a job that somebody has to release
}

func newTally() *tally { return &tally{jobs: map[string]*wire.JobStatus{}} }

// fold takes in what a watch says.
func (t *tally) fold(e *wire.WatchEvent) {
	if s := e.GetStatus(); s != nil {
		if t.jobs[s.GetId()] == nil {
			t.order = append(t.order, s.GetId())
		}
		t.jobs[s.GetId()] = s
		if heldBack(s) != "" {
			t.stuck = s
		} else if t.stuck.GetId() == s.GetId() {
			t.stuck = nil
		}
	}
	if f := e.GetFailed(); len(f) > 0 {
		t.sample = f[len(f)-1]
	}
}

// selection is by id what was chosen by sel, so that it stays the same.
func (t *tally) selection(sel *wire.Selection) *wire.Selection {
	if len(t.order) == 0 {
		return sel
	}
	return &wire.Selection{Selectors: slices.Clone(t.order)}
}

func (t *tally) sum(count func(*wire.JobStatus) int) (n int) {
	for _, s := range t.jobs {
		n += count(s)
	}
	return n
}

func (t *tally) tasks() int {
	return t.sum(func(s *wire.JobStatus) int { return max(int(s.GetTasks()), 1) })
}

func (t *tally) done() int {
	return t.sum(func(s *wire.JobStatus) int {
		if len(s.GetCounts()) == 0 && final(s) {
			return 1
		}
		return finished(s)
	})
}

func (t *tally) failed() int { return t.sum(failures) }

func (t *tally) running() int {
	return t.sum(func(s *wire.JobStatus) int {
		n := s.GetCounts()
		return int(n["running"] + n["starting"] + n["exiting"])
	})
}

func (t *tally) held() int {
	return t.sum(func(s *wire.JobStatus) int { return int(s.GetCounts()["held"]) })
}

func (t *tally) open() int {
	return t.sum(func(s *wire.JobStatus) int {
		if final(s) {
			return 0
		}
		return 1
	})
}

// code is the exit status: of a single task, its own; else 1 if any task failed.
func (t *tally) code() int {
	if len(t.jobs) == 1 {
		if s := t.jobs[t.order[0]]; s.GetTasks() <= 1 {
			return taskCode(s)
		}
	}
	if t.failed() > 0 {
		return 1
	}
	return 0
}

// title names what is waited for, in so many characters if it can be done without cutting the id; 0 for no bound.
func (t *tally) title(width int) string {
	if len(t.order) == 1 {
		s := t.jobs[t.order[0]]
		name := printable(s.GetName())
		if width > 0 {
			name = shorten(name, width-length(s.GetId())-1)
		}
		return strings.TrimSpace(s.GetId() + " " + name)
	}
	return plural(len(t.order), "job")
}

func (t *tally) String() string {
	parts := []string{fmt.Sprintf("%d of %s done", t.done(), plural(t.tasks(), "task"))}
	for _, p := range []struct {
		n    int
		what string
	}{{t.running(), "running"}, {t.held(), "held"}, {t.failed(), "failed"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

// heldBack says why a job is held, if it is and somebody gave a reason.
func heldBack(s *wire.JobStatus) string {
	if stateOf(s) != "held" || s.GetReason() == "" {
		return ""
	}
	return s.GetId() + ": " + printable(s.GetReason())
}

// failure is a line about a task that failed.
func failure(s *wire.JobStatus) string {
	text := s.GetId() + ": " + ending(s.GetExit())
	if s.GetExit() == nil {
		text = s.GetId() + ": " + stateOf(s)
		if s.GetReason() != "" {
			text += ": " + printable(s.GetReason())
		}
	}
	if s.GetNode() != "" {
		text += " on " + s.GetNode()
	}
	return text
}

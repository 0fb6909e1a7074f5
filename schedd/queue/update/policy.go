package update

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// FailureAction is what becomes of an update that has failed.
type FailureAction uint8

// What can become of it.
const (
	UndoOnFailure  FailureAction = iota // the tasks go back to the revision before
	PauseOnFailure                      // it waits for its user
	StayOnFailure                       // it ends, and each task stays what it is
)

var failureActionNames = [...]string{UndoOnFailure: "undo", PauseOnFailure: "pause", StayOnFailure: "keep"}

// String returns the word of the job file.
func (a FailureAction) String() string { return failureActionNames[a] }

// ParseFailureAction reads the word of the job file.
func ParseFailureAction(s string) (FailureAction, error) {
	for a, name := range failureActionNames {
		if s == name {
			return FailureAction(a), nil
		}
	}
	return 0, fmt.Errorf("%w: on_failure = %q: write \"undo\", \"pause\" or \"keep\"", roost.Invalid, s)
}

// The defaults of a policy.
const (
	DefaultSettling    = 10 * time.Second
	DefaultReadyWithin = 5 * time.Minute
	DefaultProgress    = 10 * time.Minute
	// CloseAfter is after how long a finished update forgets the old revision.
	CloseAfter = 24 * time.Hour
)

// Policy is what a job says of its updates, and of all planned disruptions.
type Policy struct {
	AtOnce       Amount // tasks being replaced at one time
	Surge        Amount // tasks beyond the count of the job, while it is updated
	MaxDown      Amount // tasks that all planned causes together may take down
	MaxDownSet   bool   // false: MaxDown is 1 or 5 %, the greater
	Settling     time.Duration
	ReadyWithin  time.Duration
	Progress     time.Duration // 0: an update may go on without progress
	Failures     int           // tasks that may fail
	OnFailure    FailureAction
	OnFailureSet bool
	Canary       int
	PromoteAfter time.Duration // 0: a user promotes
	Disruptions  int           // running tasks that an update may stop; -1: any number
	Pulse        time.Duration // an update waits unless it had a pulse within that; 0: it needs none
	Tasks        []Range       // none: all
	// ResizeByRestart: a task whose size changes is started again, for a program that
	// reads its limits once
	ResizeByRestart bool
}

// Range is tasks by index, both ends included.
type Range struct{ From, To int }

// DefaultPolicy is that of a job that says nothing of updates.
func DefaultPolicy() Policy {
	return Policy{AtOnce: Amount{Number: 1}, Settling: DefaultSettling, ReadyWithin: DefaultReadyWithin,
		Progress: DefaultProgress, Disruptions: -1}
}

// maxDown is how many of count tasks planned causes may take down.
func (p *Policy) maxDown(count int) int {
	if !p.MaxDownSet {
		return max(1, count*5/100)
	}
	return min(p.MaxDown.RoundDown(count), count)
}

// atOnce is how many of count tasks are replaced at one time.
func (p *Policy) atOnce(count int) int { return max(p.AtOnce.RoundDown(count), 1) }

// surge is how many tasks beyond count there may be.
func (p *Policy) surge(count int) int { return p.Surge.RoundUp(count) }

// SurgeTasks is how many tasks a job of count tasks may have beyond them.
func (p *Policy) SurgeTasks(count int) int { return p.surge(count) }

// includes reports whether an update concerns a task.
func (p *Policy) includes(i int) bool {
	for _, r := range p.Tasks {
		if i >= r.From && i <= r.To {
			return true
		}
	}
	return len(p.Tasks) == 0
}

// Problem is something wrong in a policy: the field of the job file, and the cause with
// its cure.
type Problem struct {
	Field, Text string
	Warning     bool
}

// Problems lists what makes no sense in a policy of a job of count tasks.
func (p *Policy) Problems(count int) (list []Problem) {
	refuse := func(wrong bool, field, format string, args ...any) {
		if wrong {
			list = append(list, Problem{Field: field, Text: fmt.Sprintf(format, args...)})
		}
	}
	down, surge := p.maxDown(count), p.surge(count)
	refuse(down == 0 && surge == 0, "max_down", "no task may be down, so the job could never be updated "+
		"and its machines never drained: write max_down = 1")
	refuse(surge > count, "surge", "%d tasks beyond %d: at most as many again are possible", surge, count)
	refuse(p.Settling < 0, "settle", "a time is not negative")
	refuse(p.ReadyWithin <= 0, "ready_within", "a time above 0 is needed, such as 5m")
	refuse(p.Progress < 0, "progress", "a time is not negative; 0s turns the bound off")
	refuse(p.PromoteAfter < 0, "promote", "a time is not negative")
	refuse(p.Pulse < 0, "pulse", "a time is not negative; 0s turns it off")
	refuse(p.Settling >= p.ReadyWithin && p.ReadyWithin > 0, "settle", "%v is not less than ready_within, which is "+
		"%v: make it shorter", p.Settling, p.ReadyWithin)
	refuse(p.Progress > 0 && p.ReadyWithin >= p.Progress, "ready_within", "%v is not less than progress, which is %v: "+
		"an update would be given up before a task has failed; make it shorter", p.ReadyWithin, p.Progress)
	refuse(p.Failures < 0, "failures", "a number of tasks is not negative")
	refuse(p.Failures > 0 && p.Failures >= count, "failures", "%d of %d tasks: an update of which each task fails "+
		"would be done; write at most %d", p.Failures, count, count-1)
	refuse(p.Canary < 0 || p.Canary > count, "canary", "there are %d tasks: write 0 to %d", count, count)
	refuse(p.Disruptions < -1, "disruptions", "a number of tasks is not negative")
	for _, r := range p.Tasks {
		refuse(r.From < 0 || r.To < r.From || r.To >= count, "tasks",
			"the job has no tasks %d-%d: write numbers from 0 to %d", r.From, r.To, count-1)
	}
	if down >= count && surge == 0 && p.MaxDownSet && count > 1 {
		list = append(list, Problem{Field: "max_down", Warning: true,
			Text: fmt.Sprintf("all %d tasks may be down at once in an update or a drain: set surge = 1, so that "+
				"new tasks are ready before old ones end, or a smaller max_down", count)})
	}
	return list
}

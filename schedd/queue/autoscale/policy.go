package autoscale

import (
	"fmt"
	"math"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// Source is what a service is scaled by.
type Source uint8

// The sources.
const (
	NoSource   Source = iota
	TaskMetric        // a metric that its tasks export
	CPUUse            // the part of the cores that its tasks ask for
	MemoryUse         // the part of the memory that its tasks ask for
	WaitingTasks
)

var sourceNames = [...]string{NoSource: "none", TaskMetric: "metric", CPUUse: "cpu", MemoryUse: "memory",
	WaitingTasks: "waiting"}

// String returns the word that users read.
func (s Source) String() string { return sourceNames[s] }

// The defaults and bounds of a policy.
const (
	DefaultTolerance  = 0.1
	DefaultDownWindow = 5 * time.Minute
	DefaultPeriod     = 15 * time.Second
	DefaultEvery      = 15 * time.Second
	MinEvery          = time.Second
	MaxEvery          = time.Hour
	MaxWindow         = time.Hour
	MaxTarget         = 1e12
	MinTarget         = 1e-9
	MaxUse            = 100 // of the cores or the memory that a task asks for
	// the default of UpBy is the greater of so many tasks and as many again
	defaultUpTasks = 4
)

// Policy is what a job says of how many tasks it is to have.
type Policy struct {
	Min, Max int
	Source   Source
	// what each task is to have of the source. Of CPU and memory it is a part of what
	// the task asks for: 0.7 is 70 %
	Target       float64
	Port         string // of TaskMetric: the name of the port that exports it
	Path         string
	Metric       string
	WaitingQueue string // of WaitingTasks: waiting tasks of this queue, or else
	WaitingJob   string // of the user's jobs of this name
	Tolerance    float64
	UpWindow     time.Duration
	DownWindow   time.Duration
	Period       time.Duration
	UpBy         update.Amount // tasks that are added in a period at most
	UpBySet      bool          // false: the greater of 4 and as many again
	DownBy       update.Amount // tasks that are stopped in a period at most
	Every        time.Duration // between two decisions
}

// DefaultPolicy is the policy of a job that says no more than it has to.
func DefaultPolicy() Policy {
	return Policy{Min: 1, Tolerance: DefaultTolerance, DownWindow: DefaultDownWindow, Period: DefaultPeriod,
		DownBy: update.Amount{Percent: 100}, Every: DefaultEvery, Path: "/metrics"}
}

// Clamp returns the number of tasks within the bounds that is nearest to n.
func (p *Policy) Clamp(n int) int { return min(max(n, p.Min), p.Max) }

// Problem is something wrong in a policy: the setting of the job file, the cause, and the
// cure.
type Problem struct{ Field, Cause, Cure string }

// Problems lists what makes no sense in a policy.
func (p *Policy) Problems() (list []Problem) {
	refuse := func(wrong bool, field, cause, cure string, args ...any) {
		if wrong {
			list = append(list, Problem{Field: field, Cause: fmt.Sprintf(cause, args...), Cure: cure})
		}
	}
	refuse(p.Max < 1 || p.Max > roost.MaxTasks, "max", "%d tasks are not possible",
		fmt.Sprintf("write 1 to %d", roost.MaxTasks), p.Max)
	refuse(p.Min < 1, "min", "%d tasks are not possible", "a service has at least one task: write min = 1", p.Min)
	refuse(p.Min > p.Max && p.Max >= 1, "min", "%d is more than max, which is %d", "make min smaller or max greater",
		p.Min, p.Max)
	refuse(p.Source == NoSource, "target", "it says nothing of by what the service is scaled",
		"write metric, cpu, memory, waiting_queue or waiting_job")
	refuse(!(p.Target >= MinTarget && p.Target <= MaxTarget), "target", "%g is no target", "write a number above 0",
		p.Target)
	refuse(!(p.Tolerance >= 0 && p.Tolerance < 1), "tolerance", "%g is no tolerance", "write 0% to 99%", p.Tolerance)
	refuse(p.UpWindow < 0 || p.UpWindow > MaxWindow, "up_window", "%v is no window", "write 0s to 1h", p.UpWindow)
	refuse(p.DownWindow < 0 || p.DownWindow > MaxWindow, "down_window", "%v is no window", "write 0s to 1h",
		p.DownWindow)
	refuse(p.Period < MinEvery || p.Period > MaxWindow, "period", "%v is no period", "write 1s to 1h", p.Period)
	refuse(p.Every < MinEvery || p.Every > MaxEvery, "every", "%v is no interval", "write 1s to 1h", p.Every)
	refuse(p.UpBySet && p.UpBy == update.Amount{}, "up_by", "it could never grow", "write at least 1 or 1%")
	refuse(p.DownBy == update.Amount{}, "down_by", "it could never shrink", "write at least 1 or 1%")
	return list
}

// upLimit is to how many tasks a service may grow that had start tasks when the period
// began.
func (p *Policy) upLimit(start int) int {
	if !p.UpBySet {
		return start + max(start, defaultUpTasks)
	}
	return start + max(p.UpBy.RoundUp(start), 1)
}

// downLimit is to how many tasks a service may shrink that had start tasks when the
// period began.
func (p *Policy) downLimit(start int) int { return max(start-max(p.DownBy.RoundUp(start), 1), 1) }

// isValue reports whether a measurement is a number that can be: what tasks say of
// themselves may be anything.
func isValue(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }

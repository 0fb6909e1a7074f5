package slot

import (
	"time"

	"github.com/roost-batch/roost"
)

// defaultRuntime is how long a task is taken to run of which nothing is known.
const defaultRuntime = 10 * time.Minute

// defaultGap is how long a schedd is taken to need for something new, before that was
// measured.
const defaultGap = time.Second

// maxGap is the longest time between two attempts that counts as a gap. After a longer
// time the schedd had no work.
const maxGap = time.Minute

// maxKinds bounds how many kinds of tasks are remembered.
const maxKinds = 512

// taskKind is what tasks are told apart by whose run times are alike: most work comes
// again (HRM §3.4.2).
type taskKind struct {
	owner     string
	resources roost.Resources
}

// movingAverage weighs the last few values most, so that it follows when they change.
type movingAverage struct {
	n    int
	mean time.Duration
}

func (a *movingAverage) add(d time.Duration) {
	a.n = min(a.n+1, 16)
	a.mean += (d - a.mean) / time.Duration(a.n)
}

// runtimeHistory holds the run times that were observed here. It also holds how long a
// schedd takes until it has something new for a claim.
type runtimeHistory struct {
	kinds map[taskKind]*movingAverage
	order []taskKind // a ring once it is full
	at    int
	all   movingAverage
	gaps  movingAverage
}

func newRuntimeHistory() runtimeHistory {
	return runtimeHistory{kinds: make(map[taskKind]*movingAverage)}
}

// addRun notes how long an attempt ran.
func (t *runtimeHistory) addRun(k taskKind, d time.Duration) {
	t.all.add(d)
	a := t.kinds[k]
	if a == nil {
		a = &movingAverage{}
		t.kinds[k] = a
		if len(t.order) < maxKinds {
			t.order = append(t.order, k)
		} else {
			delete(t.kinds, t.order[t.at])
			t.order[t.at] = k
			t.at = (t.at + 1) % maxKinds
		}
	}
	a.add(d)
}

// mean is 1/μ of the paper, gap its τ.
func (t *runtimeHistory) mean() time.Duration {
	if t.all.n == 0 {
		return defaultRuntime
	}
	return max(t.all.mean, time.Millisecond)
}

func (t *runtimeHistory) gap() time.Duration {
	if t.gaps.n == 0 {
		return defaultGap
	}
	return t.gaps.mean
}

// expected returns how long an attempt on the claim is expected to run. Similar tasks
// that ran here decide that, or else the time that it may run.
func (t *runtimeHistory) expected(claim *Claim) time.Duration {
	if a := t.kinds[taskKind{claim.Owner, claim.Resources}]; a != nil {
		return a.mean
	}
	if claim.Walltime > 0 {
		return claim.Walltime
	}
	return defaultRuntime
}

// remaining is how long a claim will still hold what it has. One that has run longer
// than expected is taken to run as long again.
func (t *runtimeHistory) remaining(now roost.BootTime, claim *Claim) time.Duration {
	if claim.State == Exited {
		return 0
	}
	d := max(t.expected(claim), time.Millisecond)
	if !claim.Running {
		return d
	}
	ran := now - claim.RunningSince
	for d <= ran {
		d *= 2
	}
	if claim.Walltime > 0 {
		d = min(d, claim.Walltime)
	}
	return max(d-ran, 0)
}

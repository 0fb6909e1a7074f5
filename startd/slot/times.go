package slot

import (
	"time"

	"github.com/roost-batch/roost"
)

// usualRun is how long a task is taken to run of which nothing is known.
const usualRun = 10 * time.Minute

// usualGap is how long a schedd is taken to need for something new, before that was measured.
const usualGap = time.Second

// maxGap is the longest time between two attempts that counts as a gap: after a longer one the schedd had nothing.
const maxGap = time.Minute

// maxKinds bounds how many kinds of tasks are remembered.
const maxKinds = 512

// kind is what tasks are told apart by whose run times are alike: most work comes again (HRM §3.4.2).
type kind struct {
	owner     string
	resources roost.Resources
}

// average weighs the last few values most, so that it follows when they change.
type average struct {
	n    int
	mean time.Duration
}

func (a *average) add(d time.Duration) {
	a.n = min(a.n+1, 16)
	a.mean += (d - a.mean) / time.Duration(a.n)
}

// times are the run times that were seen here, and how long it takes until a schedd has something new for a claim.
type times struct {
	kinds map[kind]*average
	order []kind // a ring once it is full
	at    int
	all   average
	gaps  average
}

func newTimes() times { return times{kinds: make(map[kind]*average)} }

// ran notes how long an attempt ran.
func (t *times) ran(k kind, d time.Duration) {
	t.all.add(d)
	a := t.kinds[k]
	if a == nil {
		a = &average{}
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
func (t *times) mean() time.Duration {
	if t.all.n == 0 {
		return usualRun
	}
	return max(t.all.mean, time.Millisecond)
}

func (t *times) gap() time.Duration {
	if t.gaps.n == 0 {
		return usualGap
	}
	return t.gaps.mean
}

// expected is how long an attempt on the claim will run: as its like have run here, or else as long as it may.
func (c *Core) expected(claim *Claim) time.Duration {
	if a := c.times.kinds[kind{claim.Owner, claim.Resources}]; a != nil {
		return a.mean
	}
	if claim.Walltime > 0 {
		return claim.Walltime
	}
	return usualRun
}

// left is how long a claim will still hold what it has. One that has run longer than expected is taken to run as long again.
func (c *Core) left(now Instant, claim *Claim) time.Duration {
	if claim.State == Exited {
		return 0
	}
	d := max(c.expected(claim), time.Millisecond)
	if !claim.Running {
		return d
	}
	ran := now - claim.Began
	for d <= ran {
		d *= 2
	}
	if claim.Walltime > 0 {
		d = min(d, claim.Walltime)
	}
	return max(d-ran, 0)
}

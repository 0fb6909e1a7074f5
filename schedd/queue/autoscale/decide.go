package autoscale

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/roost-batch/roost/internal/mutant"
)

// TaskMeasure is what is known of one task of a service.
type TaskMeasure struct {
	Ready bool
	Known bool    // Value was measured lately
	Value float64 // of the source; what cannot be counts as unknown
}

// Measurement is what is known of a service. Its tasks are those that it is to have, by
// index.
type Measurement struct {
	Tasks   []TaskMeasure
	Waiting int // of the source WaitingTasks: how many wait
}

// Recommendation is how many tasks a service needed at a time.
type Recommendation struct {
	At    int64 // unix nanoseconds
	Count int
}

// Change is a change of the number of tasks that was decided here.
type Change struct {
	At       int64 // unix nanoseconds
	From, To int
}

// Past is what was decided before.
type Past struct {
	Recommended []Recommendation // oldest first; empty after a restart of the schedd
	Changes     []Change         // oldest first
}

// Decision is how many tasks a service is to have, and why.
type Decision struct {
	Count  int // it is to have now
	Wanted int // by the measurement alone, within min and max
	// of the source: the sum, and how many tasks it is of
	Sum      float64
	Measured int
	Missing  int // ready tasks without a measurement
	Unready  int
	Reason   string
	// the recommendations that are to be handed in the next time
	Recommended []Recommendation
}

// Average is what one task has of the source.
func (d *Decision) Average() float64 {
	if d.Measured == 0 {
		return 0
	}
	return d.Sum / float64(d.Measured)
}

// decider is one call of Decide.
type decider struct {
	Decision
	policy *Policy
	before int // tasks that the service has
	now    int64
	ready  []bool
	known  bool   // there is something to decide by
	why    string // the count is not what is wanted
}

// Decide returns how many tasks a service of count tasks is to have. It asks nobody, and
// to ask it twice at one time is harmless.
func Decide(p *Policy, count int, m Measurement, past Past, now time.Time) Decision {
	d := &decider{policy: p, before: count, now: now.UnixNano()}
	d.Count = p.Clamp(count)
	d.Wanted = d.Count
	d.measure(m)
	d.recommend()
	d.Recommended = d.recent(past.Recommended)
	switch {
	case count != d.Count: // the user has moved the bounds
		d.why = fmt.Sprintf("min is %d and max is %d", p.Min, p.Max)
	case d.known:
		d.stabilize()
		d.limitChange(past.Changes)
		d.retainReady()
	}
	d.Reason = d.reason()
	return d.Decision
}

// measure adds up what is known of the tasks.
func (d *decider) measure(m Measurement) {
	d.ready = make([]bool, len(m.Tasks))
	for i, t := range m.Tasks {
		switch d.ready[i] = t.Ready; {
		case !t.Ready:
			d.Unready++
		case !t.Known || !isValue(t.Value):
			d.Missing++
		default:
			d.Measured++
			d.Sum += t.Value
		}
	}
	if d.policy.Source == WaitingTasks {
		d.Sum, d.Measured, d.Missing, d.Unready = float64(m.Waiting), d.before, 0, 0
	}
	d.Sum = min(d.Sum, math.MaxFloat64)
}

// recommend works out how many tasks the measurement alone asks for.
func (d *decider) recommend() {
	if d.Measured == 0 {
		return
	}
	p := d.policy
	low, high := p.Target*(1-p.Tolerance), p.Target*(1+p.Tolerance)
	all := float64(d.Measured + d.Missing + d.Unready)
	switch enough := math.Ceil(d.Sum/p.Target - 1e-9); {
	case d.Sum/float64(d.Measured) > high && d.Sum/all <= high:
		d.why = "tasks that are not ready may take their part"
	case d.Sum/float64(d.Measured) > high:
		d.Wanted = d.clamp(int(min(enough, float64(2*p.Max))))
	case d.Sum/float64(d.Measured) >= low:
	case d.Missing > 0:
		d.why = fmt.Sprintf("%s of %d ready tasks is not known, so that none is stopped", d.what(), d.Missing)
	default:
		d.Wanted = p.Clamp(min(int(enough), d.Wanted))
	}
	d.known = true
}

// clamp returns the number of tasks within the bounds that is nearest to n.
func (d *decider) clamp(n int) int {
	if mutant.Active(mutant.ScaledPastMax) {
		return n
	}
	return d.policy.Clamp(n)
}

// recent returns what was recommended within the windows, with what is recommended now.
// In the beginning the present number counts as recommended: nothing is known of the time
// before.
func (d *decider) recent(list []Recommendation) (within []Recommendation) {
	window := int64(max(d.policy.UpWindow, d.policy.DownWindow))
	if len(list) == 0 {
		list = []Recommendation{{d.now, d.before}}
	}
	for _, r := range list {
		if r.At = min(r.At, d.now); d.now-r.At < window { // the clock may have been set back
			within = append(within, r)
		}
	}
	if d.known {
		within = append(within, Recommendation{d.now, d.Wanted})
	}
	return compact(within)
}

// compact leaves out all but the last of recommendations of the same number in a row.
func compact(list []Recommendation) (out []Recommendation) {
	for _, r := range list {
		if n := len(out); n > 0 && out[n-1].Count == r.Count {
			out[n-1] = r
			continue
		}
		out = append(out, r)
	}
	return out
}

// stabilize takes the number that all recommendations of the window agree on.
func (d *decider) stabilize() {
	lowest, highest := d.Wanted, d.Wanted
	for _, r := range d.Recommended {
		age := time.Duration(d.now - r.At)
		if age < d.policy.UpWindow {
			lowest = min(lowest, r.Count)
		}
		if age < d.policy.DownWindow {
			highest = max(highest, r.Count)
		}
	}
	switch {
	case d.Count < lowest:
		d.Count = d.clamp(lowest)
	case d.Count > highest:
		d.Count = d.clamp(highest)
	}
	switch {
	case d.Wanted > d.Count:
		d.why = fmt.Sprintf("fewer were enough within the last %v", d.policy.UpWindow)
	case d.Wanted < d.Count:
		d.why = fmt.Sprintf("%d were needed within the last %v", highest, d.policy.DownWindow)
	}
}

// limitChange bounds by how much the number changes within a period.
func (d *decider) limitChange(changes []Change) {
	added, stopped := 0, 0
	for _, c := range changes {
		if d.now-c.At < int64(d.policy.Period) {
			added += max(c.To-c.From, 0)
			stopped += max(c.From-c.To, 0)
		}
	}
	switch n := d.Count; {
	case n > d.before:
		if d.Count = max(min(n, d.policy.upLimit(d.before-added)), d.before); d.Count < n {
			d.why = fmt.Sprintf("no more are added within %v", d.policy.Period)
		}
	case n < d.before:
		if d.Count = min(max(n, d.policy.downLimit(d.before+stopped)), d.before); d.Count > n {
			d.why = fmt.Sprintf("no more are stopped within %v", d.policy.Period)
		}
	}
}

// retainReady has a service that shrinks keep as many ready tasks as it is to have. Those
// with the highest indexes are stopped, and others may not be ready.
func (d *decider) retainReady() {
	if d.Count >= d.before || d.before > len(d.ready) {
		return
	}
	needed, n := 0, d.Count
	for _, ready := range d.ready[:d.before] {
		if ready {
			needed++
		}
	}
	needed = min(needed, d.Count)
	for _, ready := range d.ready[:n] {
		if ready {
			needed--
		}
	}
	for ; needed > 0; n++ {
		if d.ready[n] {
			needed--
		}
	}
	if n > d.Count {
		d.Count, d.why = n, "tasks with lower indexes are not ready"
	}
}

// what names the source.
func (d *decider) what() string {
	if d.policy.Source == TaskMetric {
		return d.policy.Metric
	}
	return map[Source]string{CPUUse: "the use of cores", MemoryUse: "the use of memory"}[d.policy.Source]
}

// reason says by what numbers the service has its tasks.
func (d *decider) reason() (text string) {
	p := d.policy
	switch {
	case p.Source == WaitingTasks:
		text = fmt.Sprintf("%d tasks wait, and one is for %s", int(d.Sum), Number(p.Target))
	case d.Measured == 0:
		text = fmt.Sprintf("%s of no ready task is known", d.what())
	case p.Source == TaskMetric:
		text = fmt.Sprintf("%s is %s in %d ready tasks, %s each, and %s is the target", d.what(), Number(d.Sum),
			d.Measured, Number(d.Average()), Number(p.Target))
	default:
		text = fmt.Sprintf("%s is %.0f%% in %d ready tasks, and %.0f%% is the target", d.what(), 100*d.Average(),
			d.Measured, 100*p.Target)
	}
	if d.known {
		text += fmt.Sprintf(": %d wanted", d.Wanted)
		if d.Wanted == p.Max && d.Sum > p.Target*float64(p.Max)*(1+p.Tolerance) {
			text += ", which is max"
		}
	}
	if d.why != "" {
		text += fmt.Sprintf("; %d now, as %s", d.Count, d.why)
	}
	return text
}

// Number writes a number as people would.
func Number(v float64) string {
	if math.Abs(v) >= 100 || v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// Prune returns the changes that may still bound another one.
func Prune(changes []Change, now int64) []Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return now-c.At >= int64(MaxWindow) })
}

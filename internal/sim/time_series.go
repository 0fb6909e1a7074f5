package sim

import (
	"cmp"
	"slices"
)

// TimeSeries is the course of a replay in spans of equal length, as a plot shows it.
type TimeSeries struct {
	From   int64   // start of the first span: the first submission, in seconds of the log
	Length int64   // seconds of a span
	Users  []int64 // users with the most processor time, the highest first
	Spans  []TimeSpan
}

// TimeSpan is one span of a TimeSeries. Used, Waiting and UsedBy are means over its time.
type TimeSpan struct {
	Used        float64   // processors in use
	Waiting     float64   // jobs that waited
	MaxWaiting  int       // the most jobs that waited at once
	Started     int       // jobs that started
	Wait        float64   // mean wait in seconds of the jobs that started; 0 if none did
	LongestWait int64     // longest wait in seconds of the jobs that started
	UsedBy      []float64 // processors in use by each of Users, then by all others together
}

// NewTimeSeries computes the time series of a replay. It has at most the given number of
// spans and of named users. A replay without jobs has no spans.
func NewTimeSeries(p *Result, spans, users int) *TimeSeries {
	c := &TimeSeries{}
	if len(p.Jobs) == 0 {
		return c
	}
	c.From = p.Jobs[0].Submit
	last, used := c.From+1, map[int64]int64{}
	for i := range p.Jobs {
		o := &p.Jobs[i]
		last = max(last, o.Start+o.Length)
		used[o.User] += o.Procs * o.Length
	}
	c.Length = (last-c.From-1)/int64(spans) + 1
	n := int((last-c.From-1)/c.Length + 1)
	c.Users = topUsers(used, users)
	by := make([]spanMean, len(c.Users)+1)
	for i := range by {
		by[i] = newMean(c, n)
	}
	all, waiting := newMean(c, n), newMean(c, n)
	for i := range p.Jobs {
		o := &p.Jobs[i]
		waiting.add(o.Submit, o.Start, 1)
		all.add(o.Start, o.Start+o.Length, o.Procs)
		k := slices.Index(c.Users, o.User)
		if k < 0 {
			k = len(c.Users)
		}
		by[k].add(o.Start, o.Start+o.Length, o.Procs)
	}
	c.Spans = make([]TimeSpan, n)
	for i := range c.Spans {
		s := &c.Spans[i]
		s.Used, s.Waiting = all.next(i), waiting.next(i)
		for k := range by {
			s.UsedBy = append(s.UsedBy, by[k].next(i))
		}
	}
	c.countStarts(p)
	return c
}

// topUsers returns the n users with the most processor time.
func topUsers(used map[int64]int64, n int) []int64 {
	users := make([]int64, 0, len(used))
	for u := range used {
		users = append(users, u)
	}
	slices.SortFunc(users, func(a, b int64) int { return cmp.Or(cmp.Compare(used[b], used[a]), cmp.Compare(a, b)) })
	return users[:min(n, len(users))]
}

// countStarts counts the starts in each span, their waits, and the most jobs that waited
// at once.
func (c *TimeSeries) countStarts(p *Result) {
	started := make([]*JobOutcome, len(p.Jobs))
	for i := range p.Jobs {
		started[i] = &p.Jobs[i]
	}
	slices.SortStableFunc(started, func(a, b *JobOutcome) int { return cmp.Compare(a.Start, b.Start) })
	waiting, next := 0, 0
	for i := range c.Spans {
		s, to := &c.Spans[i], c.From+int64(i+1)*c.Length
		s.MaxWaiting = waiting
		for next < len(p.Jobs) && p.Jobs[next].Submit < to || len(started) > 0 && started[0].Start < to {
			// A job that starts leaves the queue before later submissions. A job that
			// starts at its submission has not waited.
			if len(started) > 0 && (next == len(p.Jobs) || started[0].Start < p.Jobs[next].Submit ||
				started[0].Start == p.Jobs[next].Submit && waiting > 0) {
				o := started[0]
				started = started[1:]
				waiting--
				s.Started++
				s.Wait += float64(o.Waited())
				s.LongestWait = max(s.LongestWait, o.Waited())
				continue
			}
			next++
			waiting++
			if started[0].Start > p.Jobs[next-1].Submit {
				s.MaxWaiting = max(s.MaxWaiting, waiting)
			}
		}
		if s.Started > 0 {
			s.Wait /= float64(s.Started)
		}
	}
}

// spanMean sums amounts that hold for a time and returns their mean in each span. An
// amount that covers many spans costs no more than one within a span.
type spanMean struct {
	from, length int64
	partSpans    []float64 // by span: amounts that cover it in part, times their seconds
	wholeSpans   []float64 // by span: the change of wholeAmount at its beginning
	wholeAmount  float64
}

func newMean(c *TimeSeries, n int) spanMean {
	return spanMean{c.From, c.Length, make([]float64, n), make([]float64, n+1), 0}
}

// add adds an amount that holds from second from to before second to.
func (m *spanMean) add(from, to, amount int64) {
	if from >= to {
		return
	}
	first, last := (from-m.from)/m.length, (to-1-m.from)/m.length
	if first == last {
		m.partSpans[first] += float64((to - from) * amount)
		return
	}
	m.partSpans[first] += float64((m.from + (first+1)*m.length - from) * amount)
	m.partSpans[last] += float64((to - m.from - last*m.length) * amount)
	m.wholeSpans[first+1] += float64(amount)
	m.wholeSpans[last] -= float64(amount)
}

// next returns the mean in span i. Calls must go through the spans in order.
func (m *spanMean) next(i int) float64 {
	m.wholeAmount += m.wholeSpans[i]
	return m.wholeAmount + m.partSpans[i]/float64(m.length)
}

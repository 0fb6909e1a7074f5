package sim

import (
	"cmp"
	"slices"
)

// TimeSeries is how a replay went over time, in spans of equal length: what a picture of
// it shows.
type TimeSeries struct {
	From   int64   // when the first span begins: the first submission, in seconds of the log
	Length int64   // of a span, in seconds
	Users  []int64 // those who used most, the most first
	Spans  []TimeSpan
}

// TimeSpan is one of them. What is used and waits are means over its time.
type TimeSpan struct {
	Used        float64   // processors
	Waiting     float64   // jobs
	MaxWaiting  int       // jobs that waited at once
	Started     int       // jobs
	Wait        float64   // of those that started, the mean, in seconds; 0 if none did
	LongestWait int64     // and the longest
	UsedBy      []float64 // processors that each of the users used, and last all others
}

// NewTimeSeries works out how a replay went, in no more than so many spans and with so
// many users by name. There are no spans if there were no jobs.
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

// topUsers are the users who used most.
func topUsers(used map[int64]int64, n int) []int64 {
	users := make([]int64, 0, len(used))
	for u := range used {
		users = append(users, u)
	}
	slices.SortFunc(users, func(a, b int64) int { return cmp.Or(cmp.Compare(used[b], used[a]), cmp.Compare(a, b)) })
	return users[:min(n, len(users))]
}

// countStarts counts who started in each span, how long they had waited, and how many did
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
			// Who starts leaves before who comes later; who starts as he comes has not
			// waited.
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

// spanMean gathers amounts that hold for a time, and gives their mean in each span. What
// covers many spans costs no more than what lies in one.
type spanMean struct {
	from, length int64
	partSpans    []float64 // of what begins or ends in a span, times its seconds
	wholeSpans   []float64 // by how much what covers a whole span changes at its beginning
	wholeAmount  float64
}

func newMean(c *TimeSeries, n int) spanMean {
	return spanMean{c.From, c.Length, make([]float64, n), make([]float64, n+1), 0}
}

// add adds an amount that holds from one second to before another.
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

// next is the mean in a span; the spans are asked for in their order.
func (m *spanMean) next(i int) float64 {
	m.wholeAmount += m.wholeSpans[i]
	return m.wholeAmount + m.partSpans[i]/float64(m.length)
}

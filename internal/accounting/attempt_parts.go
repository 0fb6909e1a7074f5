package accounting

import (
	"github.com/roost-batch/roost"
)

// maxClockDifference is how much longer than measured an attempt may seem. At more, a
// clock was set meanwhile, and the end counts.
const maxClockDifference = DayMillis

// Span returns the time [from, to) over which an attempt is distributed. An attempt that
// runs is distributed until now. The times come from clocks that may have been set: they
// place the measured wall time, and never change its amount.
func (a *AttemptEntry) Span(now Millis) (from, to Millis) {
	if a.Ended == 0 {
		if a.Started == 0 {
			return 0, 0
		}
		return a.Started, max(now, a.Started)
	}
	from, to = a.Started, a.Ended
	if from == 0 || from > to || to-from > Millis(a.Wall)+maxClockDifference {
		from = to - Millis(max(a.Wall, 0))
	}
	return from, to
}

// Skew returns the difference in milliseconds between the measured wall time and end
// minus start.
func (a *AttemptEntry) Skew() int64 {
	if a.Started == 0 || a.Ended == 0 {
		return 0
	}
	d := int64(a.Ended-a.Started) - a.Wall
	return max(d, -d)
}

// HasFailed reports whether an attempt ended otherwise than by a success or by removal.
func (a *AttemptEntry) HasFailed() bool {
	return a.Cause != NotEnded && a.Cause != EndedRemoval && !a.HasSucceeded()
}

// HasSucceeded reports whether an attempt ended by itself with exit code 0, or with that
// which its job calls success.
func (a *AttemptEntry) HasSucceeded() bool {
	return a.Cause == EndedOwnSuccess || a.Cause == EndedExit && a.ExitCode == 0 && a.Signal == 0
}

// timePart is a time of an attempt during which its resources did not change.
type timePart struct {
	from, to  Millis
	wall      int64
	suspended int64
	held      roost.Resources
}

// timeParts cuts an attempt into its segments. Their wall times sum to the attempt's.
func (a *AttemptEntry) timeParts(now Millis) []timePart {
	from, to := a.Span(now)
	wall := max(a.Wall, 0)
	if a.Ended == 0 {
		wall = int64(to - from)
	}
	if len(a.Segments) == 0 {
		return []timePart{{from, to, wall, min(max(a.Suspended, 0), wall), a.Held}}
	}
	parts := make([]timePart, len(a.Segments))
	rest := wall
	for i, s := range a.Segments {
		p := timePart{from: clampTime(s.From, from, to), to: to, held: s.Held}
		if i == 0 {
			p.from = from
		} else {
			p.from = max(p.from, parts[i-1].from)
			parts[i-1].to = p.from
		}
		p.wall = min(max(s.Wall, 0), rest)
		rest -= p.wall
		parts[i] = p
	}
	parts[len(parts)-1].wall += rest
	for i, s := range a.Segments {
		if s.Suspended {
			parts[i].suspended = parts[i].wall
		}
	}
	return parts
}

// HeldSpan is a time during which an attempt held the same resources.
type HeldSpan struct {
	From, To Millis
	Held     roost.Resources
}

// HeldSpans returns what an attempt held of its machine and when, from its assignment to
// its end, or to now. A suspended attempt holds what it has.
func (a *AttemptEntry) HeldSpans(now Millis) []HeldSpan {
	if a.Ended == 0 && a.Started == 0 {
		if a.Assigned == 0 || a.Assigned >= now {
			return nil
		}
		return []HeldSpan{{a.Assigned, now, a.Held}}
	}
	parts := a.timeParts(now)
	spans := make([]HeldSpan, len(parts))
	for i := range parts {
		spans[i] = HeldSpan{parts[i].from, parts[i].to, parts[i].held}
	}
	if first := &spans[0]; a.Assigned != 0 && a.Assigned < first.From && first.From-a.Assigned <= maxClockDifference {
		first.From = a.Assigned
	}
	return spans
}

func clampTime(t, from, to Millis) Millis { return min(max(t, from), to) }

// amounts returns what the part held.
func (p *timePart) amounts(charged bool) (a Amounts) {
	a.Wall, a.Suspended = p.wall, p.suspended
	a.HeldCPU = mulDiv(p.wall, int64(p.held.CPU), 1000)
	a.HeldGPU = mulDiv(p.wall, int64(p.held.GPUs), 1)
	a.HeldMem = memorySeconds(p.held.Memory, p.wall)
	if charged {
		a.ChargedCPU = mulDiv(p.wall-p.suspended, int64(p.held.CPU), 1000)
	}
	return a
}

// memorySeconds returns MiB-seconds.
func memorySeconds(m roost.Bytes, wall int64) int64 {
	return mulDiv(int64(m), wall, int64(roost.MiB)*1000)
}

// wholeAmounts returns what is known of an attempt as a whole, and not of its segments.
func (a *AttemptEntry) wholeAmounts(heldCPU int64) (w Amounts) {
	w.UsedCPU = max(a.UserCPU, 0) + max(a.SystemCPU, 0)
	w.PeakMem = memorySeconds(a.Peak.Memory, a.Wall)
	if a.Ended != 0 && a.Wall > 0 {
		w.LostCPU = mulDiv(heldCPU, a.Wall-min(max(a.Useful, 0), a.Wall), a.Wall)
	}
	return w
}

// Total returns all that an attempt held and used, and its counts. eligible is when its
// job could run.
func (a *AttemptEntry) Total(eligible, now Millis) (t Amounts) {
	for _, p := range a.timeParts(now) {
		part := p.amounts(a.Ended != 0 && a.Cause.IsCharged())
		t.Add(&part)
	}
	w := a.wholeAmounts(t.HeldCPU)
	t.Add(&w)
	starts := a.startCounts(eligible)
	t.Add(&starts)
	ends := a.endCounts()
	t.Add(&ends)
	return t
}

func (a *AttemptEntry) startCounts(eligible Millis) (c Amounts) {
	if a.Started == 0 {
		return c
	}
	c.Started = 1
	if a.Attempt == 1 && eligible != 0 {
		c.Waits, c.WaitSum = 1, int64(max(a.Started-eligible, 0))
	}
	return c
}

func (a *AttemptEntry) endCounts() (c Amounts) {
	if a.Ended == 0 {
		return c
	}
	c.Ended = 1
	if a.HasFailed() {
		c.Failed = 1
	}
	return c
}

// StartHour returns the hour in which the start of an attempt is counted. 0: it has not
// started.
func (a *AttemptEntry) StartHour() Millis {
	if a.Started == 0 {
		return 0
	}
	from, _ := a.Span(a.Started)
	return from.Hour()
}

// HourParts calls visit with the part of each hour within r in which the attempt ran,
// started or ended. The parts of all hours sum to Total.
func (a *AttemptEntry) HourParts(eligible, now Millis, r TimeRange, visit func(hour Millis, part *Amounts)) {
	from, to := a.Span(now)
	if to == 0 {
		return
	}
	if from.Hour() == to.Hour() {
		if r.Contains(from.Hour()) {
			t := a.Total(eligible, now)
			visit(from.Hour(), &t)
		}
		return
	}
	parts := a.timeParts(now)
	held := make([]Amounts, len(parts))
	var heldCPU int64
	for i := range parts {
		held[i] = parts[i].amounts(a.Ended != 0 && a.Cause.IsCharged())
		heldCPU += held[i].HeldCPU
	}
	whole := a.wholeAmounts(heldCPU)
	for hour := max(from.Hour(), r.From); hour <= to && (r.To == 0 || hour < r.To); hour += HourMillis {
		begin, end := max(hour, from), min(hour+HourMillis, to)
		sum := whole.share(from, to, begin, end)
		for i := range parts {
			p := &parts[i]
			if p.runsIn(begin, end) {
				s := held[i].share(p.from, p.to, clampTime(begin, p.from, p.to), clampTime(end, p.from, p.to))
				sum.Add(&s)
			}
		}
		if hour == from.Hour() {
			c := a.startCounts(eligible)
			sum.Add(&c)
		}
		if hour == to.Hour() {
			c := a.endCounts()
			sum.Add(&c)
		}
		visit(hour, &sum)
	}
}

// runsIn reports whether the part runs in [begin, end), which begins with an hour. A part
// without length belongs to the hour in which it is.
func (p *timePart) runsIn(begin, end Millis) bool {
	if p.from == p.to {
		return p.from.Hour() == begin.Hour()
	}
	return p.from < end && p.to > begin
}

// share returns the part of the amounts for [begin, end) of [from, to), without counts.
func (a *Amounts) share(from, to, begin, end Millis) (s Amounts) {
	part := func(total int64) int64 { return share(total, from, to, begin, end) }
	s.Wall, s.Suspended = part(a.Wall), part(a.Suspended)
	s.HeldCPU, s.HeldGPU, s.HeldMem = part(a.HeldCPU), part(a.HeldGPU), part(a.HeldMem)
	s.UsedCPU, s.PeakMem = part(a.UsedCPU), part(a.PeakMem)
	s.LostCPU, s.ChargedCPU = part(a.LostCPU), part(a.ChargedCPU)
	return s
}

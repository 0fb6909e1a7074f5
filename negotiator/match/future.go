package match

import (
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/forecast"
)

// Of a machine a part of which is held for somebody, the plan keeps its future: who gives what back when, and what is held from when on. Anybody else
// may take of it only what is free beside the holds for as long as he runs. Of all other machines only the present counts.

// course is what a plan knows of the future.
type course struct {
	now     forecast.Seconds
	futures map[int]*future // of the machines of which something is held, by their numbers
	heads   int             // units that something is held for
	tries   int             // requests for which something was looked for that can be held
	gangs   int             // that were placed, or tried
	started []int32         // see startedOn
	undo    *undo           // a gang is being placed
}

// prospect is what a plan knows of the future of a want.
type prospect struct {
	reserved  *Reservation     // that it asks for
	barred    string           // why it cannot start at all
	reach     []int            // the machines that could run it, nil until that was asked
	on        []portion        // where something is held for it
	start     forecast.Seconds // when it starts, as far as that is known
	certainty Certainty
	gang      int // the number of the gang that is being placed
}

// future is what is to come of one machine.
type future struct {
	forecast.Machine
	holds []hold // beside Machine.Holds, by the same numbers
}

// hold is whose a hold is.
type hold struct {
	reserved *Reservation // an advance reservation's
	drain    *Drain       // the administrator's
	head     *want        // a request's that waits for it
}

// everything is more than any machine has, in what every request wants something of.
var everything = roost.Resources{CPU: 1 << 40, Memory: 1 << 60}

// seconds is a length of time in a forecast, rounded up; nothing ends that says no length.
func seconds(d time.Duration) forecast.Seconds {
	if d <= 0 {
		return forecast.Never
	}
	return int64((d + time.Second - 1) / time.Second)
}

// length is how long a unit of a want is taken to run: as it says, or as it is expected to.
func (w *want) length() forecast.Seconds {
	if w.Predicted > 0 && (w.Walltime <= 0 || w.Predicted < w.Walltime) {
		return seconds(w.Predicted)
	}
	return seconds(w.Walltime)
}

// weight is what so many units of a class take in a forecast. Stream tasks take the processor time of batch tasks, and leave it to them.
func weight(r roost.Resources, class gpu.Class, n int) roost.Resources {
	if class == gpu.Stream {
		r.CPU = 0
	}
	return times(r, n)
}

// future returns the future of a machine as this plan may change it.
func (p *plan) future(at int) *future {
	if f := p.futures[at]; f != nil {
		return f
	}
	if p.futures == nil {
		p.futures = map[int]*future{}
	}
	f := p.scratch.future(p.Machines[at].returns)
	p.foretold(f, at)
	p.futures[at] = f
	return f
}

// foresee says what will come back of a machine, if nobody holds it. What should be over already comes back in a moment.
func (p *plan) foresee(at int) *future {
	f := &future{}
	f.Releases = slices.Clone(p.Machines[at].returns)
	p.foretold(f, at)
	return f
}

// foretold completes a future, in which the machine's own returns are noted already.
func (p *plan) foretold(f *future, at int) {
	m := p.Machines[at]
	f.Free = p.free[at]
	for i := 0; i < len(f.Releases) && f.Releases[i].At <= p.now; i++ {
		f.Releases[i].At = p.now + 1
	}
	release := func(ends forecast.Seconds, r roost.Resources, class gpu.Class, n int) {
		if ends > 0 {
			f.Release(max(ends, p.now+1), weight(r, class, n))
		}
	}
	for i := range m.Claims {
		if c := &m.Claims[i]; !c.Taken {
			at, _ := c.over(p.now)
			release(at, c.Resources, c.App(), 1)
		}
	}
	for _, one := range p.Pending[m.Name] {
		if !one.Waiting {
			release(one.Ends, one.Resources, one.Class, 1)
		}
	}
	for _, g := range p.out.Grants {
		if g.Machine == m && !g.Waiting {
			c := g.Request.Class
			release(forecast.End(p.now, (&want{Request: g.Request}).length()), p.takes(c, at), c.App, g.Units)
		}
	}
}

// keep holds a part of a machine. All who have looked at the machine look again.
func (p *plan) keep(at int, h forecast.Hold, of hold) {
	f := p.future(at)
	f.Holds, f.holds = append(f.Holds, h), append(f.holds, of)
	if of.head != nil {
		p.out.Heads = append(p.out.Heads, Head{Request: of.head.whole().Request, Machine: p.Machines[at], From: h.From})
	}
	p.changed(at)
}

// changed notes that there is more or less to be had on a machine than before.
func (p *plan) changed(at int) {
	p.touch(at)
	p.log = append(p.log, placed{int32(at), p.versions[at]})
}

// entitled reports whether a hold is for that request, or one that it need not mind.
func (h *hold) entitled(w *want) bool {
	return h.head != nil && h.head == w.whole() || h.reserved != nil && h.reserved == w.reserved
}

// beside is how many of n units of a want a machine can take beside what is held of it, if there is room for them now.
func (p *plan) beside(w *want, at, n int) int {
	f := p.futures[at]
	if f == nil {
		return n
	}
	others := 0
	for i := range f.holds {
		others += btoi(!f.holds[i].entitled(w))
	}
	if others == 0 {
		return n
	}
	mine := forecast.Machine{Free: p.seen(w, at, f.Free), Releases: f.Releases, Holds: f.Holds}
	if others < len(f.holds) {
		mine.Holds = nil
		for i, h := range f.Holds {
			if !f.holds[i].entitled(w) {
				mine.Holds = append(mine.Holds, h)
			}
		}
	}
	return mine.Units(p.now, f.lengthBeside(w), weight(w.Class.Resources, w.Class.App, 1), n)
}

// lengthBeside is how long a unit of a want is taken to run beside what is held of a machine. Where a request was told when it starts at the latest, that is as
// long as the unit may: a prediction that is too short would delay it. Elsewhere it is as long as it is expected to.
func (f *future) lengthBeside(w *want) forecast.Seconds {
	for i := range f.holds {
		if h := &f.holds[i]; h.head != nil && h.head.certainty == ByWalltime && !h.entitled(w) {
			return seconds(w.Walltime)
		}
	}
	return w.length()
}

// took notes that n units of a want were placed on a machine: what is held for it is held no more.
func (p *plan) took(w *want, at, n int) {
	f := p.futures[at]
	if f == nil {
		return
	}
	r := weight(p.takes(w.Class, at), w.Class.App, n)
	f.Start(p.now, w.length(), r)
	for i := range f.Holds {
		if h := &f.Holds[i]; f.holds[i].entitled(w) && h.Resources != everything {
			h.Resources = atLeast(h.Resources.Sub(r), roost.Resources{})
		}
	}
}

// keptFor says for whom a machine is kept on which a want has room.
func (p *plan) keptFor(w *want, at int) (Kind, string) {
	f := p.futures[at]
	for i, h := range f.Holds {
		if of := &f.holds[i]; !of.entitled(w) {
			alone := forecast.Machine{Free: p.seen(w, at, f.Free), Releases: f.Releases, Holds: []forecast.Hold{h}}
			if alone.Units(p.now, f.lengthBeside(w), weight(w.Class.Resources, w.Class.App, 1), 1) == 0 {
				return of.kind(h.From > p.now), p.holdText(h, of)
			}
		}
	}
	return Held, "held for others"
}

// closed says for whom a whole machine is kept from a want by now, and Other if it is not.
func (p *plan) closed(w *want, at int) (Kind, string) {
	if f := p.futures[at]; f != nil {
		for i, h := range f.Holds {
			if of := &f.holds[i]; h.Resources == everything && h.From <= p.now && !of.entitled(w) {
				return of.kind(false), p.holdText(h, of)
			}
		}
	}
	return Other, ""
}

// kind is how a hold counts among the reasons: until a drain begins the machine is to be used, for what ends before.
func (h *hold) kind(later bool) Kind {
	switch {
	case h.drain != nil && !later:
		return Drained
	case h.drain != nil, h.reserved != nil:
		return Reserved
	}
	return Held
}

// holdText says whose a hold is, and from when on.
func (p *plan) holdText(h forecast.Hold, of *hold) string {
	switch {
	case of.drain != nil && h.From > p.now:
		return strings.TrimSuffix("to be drained from "+p.instant(h.From)+", before it would end: "+of.drain.Reason, ": ")
	case of.drain != nil:
		return strings.TrimSuffix("drained: "+of.drain.Reason, ": ")
	case of.reserved != nil && h.From > p.now:
		return "reserved as " + of.reserved.Name + " from " + p.instant(h.From) + ", before it would end"
	case of.reserved != nil:
		return "reserved as " + of.reserved.Name + " until " + p.instant(h.Until)
	case h.From > p.now:
		when := "at " + p.instant(h.From) + " at the latest"
		if of.head.certainty == ByPrediction {
			when = "about " + p.instant(h.From)
		}
		return "held for a request of " + of.head.Submitter.Owner + " that comes before it and starts " + when
	}
	return "held for a request of " + of.head.Submitter.Owner + " that comes before it, as it falls free"
}

// instant writes a time for people.
func (p *plan) instant(t forecast.Seconds) string {
	return time.Unix(t, 0).In(p.Now.Location()).Format("2006-01-02 15:04:05 MST")
}

// clone is a copy that shares nothing that changes.
func (f *future) clone() *future {
	g := *f
	g.Releases, g.Holds, g.holds = slices.Clone(f.Releases), slices.Clone(f.Holds), slices.Clone(f.holds)
	return &g
}

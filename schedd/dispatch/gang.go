package dispatch

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Grants of a gang come together, and are worth something only together: all machines are asked at once, and claims that are there wait for those that
// are not. When all have come their tasks start. When one is refused, or does not come in time, the others are given back, and the gang is wanted again
// as a whole: so two gangs cannot keep each other waiting with half of what each needs. A claim of a gang runs one task, and is then given back.
//
// A claim for which others have to leave its machine is there at once, and has its resources when they have gone: within the notice that they were
// promised, so there is no bound on how long the rest of its gang waits for that.

// gang is a gang whose claims are being asked for.
type gang struct {
	id      GrantID   // of its first grant
	request RequestID // its only one, or the one that leads
	size    int
	claims  []*Claim // in the order of their grants
	failed  string   // why nothing will come of it
	since   Instant
}

// Seat is a claim that a task of a gang is to run on.
type Seat struct {
	Node, Address string
	Claim         uint64
	Request       RequestID // that the claim was asked for
}

// gangOf finds or makes the gang of a grant, and says why the grant is of no use; nil for a grant of none.
func (d *Dispatcher) gangOf(now Instant, g Grant) (*gang, string) {
	want, gangs := d.work.Gang(g.Request)
	if g.Gang == 0 {
		if gangs && want != 1 { // of one there is no more than a task
			return nil, "its tasks start together"
		}
		return nil, ""
	}
	id := GrantID{g.Epoch, g.Gang}
	of := d.gangs[id]
	if of == nil {
		lead, mixed := d.work.Lead(g.Request)
		ready := d.work.Ready(g.Request)
		if mixed { // then there is one gang
			ready = want
		}
		of = &gang{id: id, request: lead, size: g.GangSize, since: now}
		if want != g.GangSize || d.gathering(lead)+g.GangSize > ready {
			of.failed = "no gang of that size waits for it any more"
		}
		d.gangs[id] = of
	}
	return of, of.failed
}

// gathering is how many claims of gangs of a request wait for others, or were asked for.
func (d *Dispatcher) gathering(r RequestID) (n int) {
	for _, of := range d.gangs {
		if of.request == r && of.failed == "" {
			n += of.size
		}
	}
	return n
}

// join puts a claim that is there into its gang, and starts the gang if it was the last.
func (d *Dispatcher) join(now Instant, c *Claim) {
	of := c.gang
	d.enter(now, c, Idle)
	if of.failed != "" {
		d.release(c)
		return
	}
	d.gather(now, of)
}

// whole reports whether all claims of a gang were accepted.
func (of *gang) whole() bool {
	return len(of.claims) == of.size && !slices.ContainsFunc(of.claims, func(c *Claim) bool { return c.State != Idle })
}

// gather starts a gang if all its claims are there and have their resources.
func (d *Dispatcher) gather(now Instant, of *gang) {
	if !of.whole() || slices.ContainsFunc(of.claims, func(c *Claim) bool { return c.Waiting }) {
		return
	}
	seats := make([]Seat, 0, of.size)
	for _, one := range of.claims {
		seats = append(seats, Seat{one.Node, d.nodes[one.Node].address, one.ID, one.Request})
	}
	attempts, ok := d.work.AssignGang(of.request, seats)
	if !ok {
		d.scatter(of, "no gang of that size is ready any more")
		return
	}
	delete(d.gangs, of.id)
	for i, one := range of.claims {
		one.gang, one.leaving = nil, true
		one.Attempt, one.Running, one.vacating, one.keep = attempts[i], false, false, false
		d.enter(now, one, Busy)
		d.busy[attempts[i].Task] = one
	}
	for i, one := range of.claims { // when all know of each other
		d.emit(Activate{one.Node, one.ID, attempts[i]})
	}
}

// scatter gives the claims of a gang back that will not be whole. Those that were asked for and are not there are given back when they come.
func (d *Dispatcher) scatter(of *gang, why string) {
	if of.failed != "" {
		return
	}
	of.failed = why
	for _, c := range of.claims {
		if c.State == Idle && c.ID != 0 {
			d.release(c)
		}
	}
}

// part notes that a claim of a gang is no more.
func (d *Dispatcher) part(c *Claim) {
	if of := c.gang; of != nil {
		c.gang = nil
		of.claims = slices.DeleteFunc(slices.Clone(of.claims), func(o *Claim) bool { return o == c })
		d.scatter(of, fmt.Sprintf("the claim on %s, which is one of its gang, did not come about", c.Node))
	}
}

// disband gives up gangs that have all their claims and wait for room while their job is gone, held, or not that large any more: else machines would be
// kept for nothing, for as long as those take who have to leave them.
func (d *Dispatcher) disband(r RequestID) {
	r, mixed := d.work.Lead(r)
	for _, id := range sortedGangs(d.gangs) {
		of := d.gangs[id]
		ready := d.work.Ready(r)
		if mixed {
			ready, _ = d.work.Gang(r)
		}
		if of.request == r && of.failed == "" && of.whole() && d.gathering(r) > ready {
			d.scatter(of, "no gang of that size is ready any more")
		}
	}
}

// tickGangs gives up gangs that have not come together in time, and forgets those of which nothing can come any more.
func (d *Dispatcher) tickGangs(now Instant) {
	for _, id := range sortedGangs(d.gangs) {
		of := d.gangs[id]
		switch {
		case now < of.due(d.opt):
		case of.failed != "":
			delete(d.gangs, id)
		default:
			d.scatter(of, "not all of its gang came about in time")
			d.emit(Answer{Grant: id, Request: of.request, Reason: of.failed})
		}
	}
}

func sortedGangs(gangs map[GrantID]*gang) []GrantID {
	return slices.SortedFunc(maps.Keys(gangs), func(a, b GrantID) int { return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.ID, b.ID)) })
}

// due is when something is to be done about a gang that has not come together.
func (of *gang) due(opt Options) Instant {
	switch {
	case of.failed != "":
		return of.since + 2*opt.AskTimeout
	case of.whole(): // nobody is asked any more
		return math.MaxInt64
	}
	return of.since + opt.AskTimeout
}

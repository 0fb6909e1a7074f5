package dispatch

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/roost-batch/roost"
)

// Grants of a gang come together, and are worth something only together: all machines are
// asked at once, and claims that are there wait for those that are not. When all have
// come their tasks start. When one is refused, or does not come in time, the others are
// given back, and the gang is wanted again as a whole: so two gangs cannot keep each
// other waiting with half of what each needs. A claim of a gang runs one task, and is
// then given back.
//
// A claim for which others have to leave its machine is there at once, and has its
// resources when they have gone: within the notice that they were promised, so there is
// no bound on how long the rest of its gang waits for that.

// pendingGang is a gang whose claims are being asked for.
type pendingGang struct {
	id      roost.GrantID // of its first grant
	request RequestID     // its only one, or the one that leads
	size    int
	claims  []*Claim // in the order of their grants
	failure string   // why nothing will come of it
	since   roost.BootTime
}

// GangClaim is a claim that a task of a gang is to run on.
type GangClaim struct {
	Node, Address string
	Claim         uint64
	Request       RequestID // that the claim was asked for
}

// gangAssembly is the part of the dispatcher that brings the claims of gangs together.
type gangAssembly struct{ *Dispatcher }

func (d *Dispatcher) assembly() gangAssembly { return gangAssembly{d} }

// findOrAddGang finds or makes the gang of a grant, and returns why the grant is
// unusable. It returns a nil gang for a grant of no gang.
func (d gangAssembly) findOrAddGang(now roost.BootTime, g Grant) (*pendingGang, string) {
	want, gangs := d.jobQueue.NextGang(g.Request)
	if g.GangID == 0 {
		if gangs && want != 1 { // of one there is no more than a task
			return nil, "its tasks start together"
		}
		return nil, ""
	}
	id := roost.GrantID{Epoch: g.Epoch, ID: g.GangID}
	of := d.gangs[id]
	if of == nil {
		lead, mixed := d.jobQueue.GangRequest(g.Request)
		ready := d.jobQueue.ReadyTasks(g.Request)
		if mixed { // then there is one gang
			ready = want
		}
		of = &pendingGang{id: id, request: lead, size: g.GangSize, since: now}
		if want != g.GangSize || d.gangClaims(lead)+g.GangSize > ready {
			of.failure = "no gang of that size waits for it any more"
		}
		d.gangs[id] = of
	}
	return of, of.failure
}

// gangClaims is how many claims of gangs of a request wait for others, or were asked for.
func (d gangAssembly) gangClaims(r RequestID) (n int) {
	for _, of := range d.gangs {
		if of.request == r && of.failure == "" {
			n += of.size
		}
	}
	return n
}

// addToGang puts a claim that is there into its gang, and starts the gang if it was the
// last.
func (d gangAssembly) addToGang(now roost.BootTime, c *Claim) {
	of := c.gang
	d.setState(now, c, Idle)
	if of.failure != "" {
		d.release(c)
		return
	}
	d.startGang(now, of)
}

// isComplete reports whether all claims of a gang were accepted.
func (of *pendingGang) isComplete() bool {
	return len(of.claims) == of.size && !slices.ContainsFunc(of.claims, func(c *Claim) bool { return c.State != Idle })
}

// startGang starts a gang if all its claims are there and have their resources.
func (d gangAssembly) startGang(now roost.BootTime, of *pendingGang) {
	if !of.isComplete() || slices.ContainsFunc(of.claims, func(c *Claim) bool { return c.Waiting }) {
		return
	}
	seats := make([]GangClaim, 0, of.size)
	for _, one := range of.claims {
		seats = append(seats, GangClaim{one.Node, d.nodes[one.Node].address, one.ID, one.Request})
	}
	attempts, ok := d.jobQueue.AssignGang(of.request, seats)
	if !ok {
		d.abortGang(of, "no gang of that size is ready any more")
		return
	}
	delete(d.gangs, of.id)
	for i, one := range of.claims {
		one.gang, one.releaseAtEnd = nil, true
		one.Attempt, one.Running, one.vacating, one.withCheckpoint = attempts[i], false, false, false
		d.setState(now, one, Busy)
		d.busy[attempts[i].Task] = one
	}
	for i, one := range of.claims { // when all know of each other
		d.emit(ActivateClaim{one.Node, one.ID, attempts[i]})
	}
}

// abortGang gives the claims of a gang back that will not be whole. Those that were asked
// for and are not there are given back when they come.
func (d gangAssembly) abortGang(of *pendingGang, why string) {
	if of.failure != "" {
		return
	}
	of.failure = why
	for _, c := range of.claims {
		if c.State == Idle && c.ID != 0 {
			d.release(c)
		}
	}
}

// leaveGang notes that a claim of a gang is no more.
func (d gangAssembly) leaveGang(c *Claim) {
	if of := c.gang; of != nil {
		c.gang = nil
		of.claims = slices.DeleteFunc(slices.Clone(of.claims), func(o *Claim) bool { return o == c })
		d.abortGang(of, fmt.Sprintf("the claim on %s for its gang failed", c.Node))
	}
}

// cancelGangs gives up complete gangs that wait for room when their job no longer needs
// them. The job is gone, held, or no longer that large. Otherwise the claims would keep
// machines unused for as long as the tasks that must leave them take.
func (d gangAssembly) cancelGangs(r RequestID) {
	r, mixed := d.jobQueue.GangRequest(r)
	for _, id := range sortedGangs(d.gangs) {
		of := d.gangs[id]
		ready := d.jobQueue.ReadyTasks(r)
		if mixed {
			ready, _ = d.jobQueue.NextGang(r)
		}
		if of.request == r && of.failure == "" && of.isComplete() && d.gangClaims(r) > ready {
			d.abortGang(of, "no gang of that size is ready any more")
		}
	}
}

// expireGangs gives up gangs that were not complete in time. It forgets gangs that can
// have no further effect.
func (d gangAssembly) expireGangs(now roost.BootTime) {
	for _, id := range sortedGangs(d.gangs) {
		of := d.gangs[id]
		switch {
		case now < of.deadline(d.options):
		case of.failure != "":
			delete(d.gangs, id)
		default:
			d.abortGang(of, "not all claims of its gang were made in time")
			d.emit(GrantResult{Grant: id, Request: of.request, Reason: of.failure})
		}
	}
}

func sortedGangs(gangs map[roost.GrantID]*pendingGang) []roost.GrantID {
	return slices.SortedFunc(maps.Keys(gangs), func(a, b roost.GrantID) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.ID, b.ID))
	})
}

// deadline is when something is to be done about a gang that has not come together.
func (of *pendingGang) deadline(opt TimerOptions) roost.BootTime {
	switch {
	case of.failure != "":
		return of.since + 2*opt.RequestTimeout
	case of.isComplete(): // nobody is asked any more
		return math.MaxInt64
	}
	return of.since + opt.RequestTimeout
}

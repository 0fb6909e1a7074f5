package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// RequestTotal is what the claims of a request hold together, those that are only asked
// for not counted.
type RequestTotal struct {
	Claims    int
	Resources roost.Resources
	Elsewhere roost.Resources // the part of Resources that is on machines of other pools
}

// elsewhere returns what a claim holds on a machine of another pool. Such a machine has
// the pool in its name, "n1@physics".
func (c *Claim) elsewhere() roost.Resources {
	if strings.Contains(c.Node, "@") {
		return c.Resources
	}
	return roost.Resources{}
}

// maxLeaseElsewhere is the longest lease on a machine of another pool. That pool may end
// the agreement, and its machines then say nothing more.
const maxLeaseElsewhere = 10 * time.Minute

// leaseAt returns the lease of a claim of a request on a machine.
func leaseAt(d *Dispatcher, node string, r RequestID) time.Duration {
	lease := d.jobQueue.Lease(r)
	if strings.Contains(node, "@") {
		lease = min(lease, maxLeaseElsewhere)
	}
	return lease
}

// EachTotal lists the totals of the requests, in order of their numbers. It does not look
// at the claims, because it is called every second.
func (d *Dispatcher) EachTotal(each func(RequestID, RequestTotal)) {
	for _, r := range slices.Sorted(maps.Keys(d.totals)) {
		each(r, d.totals[r])
	}
}

// ClaimCount counts the claims that a request holds.
func (d *Dispatcher) ClaimCount(r RequestID) int { return d.totals[r].Claims }

// addToNode puts a claim on its node. One of the same number that was there is no more.
func (d *Dispatcher) addToNode(n *nodeState, c *Claim) {
	d.removeFromNode(n, c.ID)
	n.claims[c.ID] = c
	t := d.totals[c.Request]
	d.totals[c.Request] = RequestTotal{t.Claims + 1, t.Resources.Add(c.Resources), t.Elsewhere.Add(c.elsewhere())}
	d.deadlines().noteAdded(n, c)
}

// removeFromNode takes the claim of that number from its node, if there is one.
func (d *Dispatcher) removeFromNode(n *nodeState, id uint64) {
	c := n.claims[id]
	if c == nil {
		return
	}
	delete(n.claims, id)
	if t := d.totals[c.Request]; t.Claims == 1 {
		delete(d.totals, c.Request)
	} else {
		d.totals[c.Request] = RequestTotal{t.Claims - 1, t.Resources.Sub(c.Resources), t.Elsewhere.Sub(c.elsewhere())}
	}
	d.deadlines().noteRemoved(n)
}

// checkTotals panics when they are not what the claims hold.
func checkTotals(d *Dispatcher) {
	want := make(map[RequestID]RequestTotal)
	d.EachClaim(func(c *Claim) {
		if c.State != Requested {
			t := want[c.Request]
			want[c.Request] = RequestTotal{t.Claims + 1, t.Resources.Add(c.Resources), t.Elsewhere.Add(c.elsewhere())}
		}
	})
	if !maps.Equal(d.totals, want) {
		panic(fmt.Sprintf("dispatch: requests hold %v, and are thought to hold %v", want, d.totals))
	}
}

// NoteResizing notes that the startd of an attempt is asked for another size of its
// claim. Until it has answered nobody knows which size the claim has, so it takes no
// other task.
func NoteResizing(d *Dispatcher, a roost.AttemptID) {
	if c := d.busy[a.Task]; c != nil && c.Attempt == a && c.State == Busy {
		c.resizing = true
	}
}

// Resized notes what the claim of an attempt has now, and for which request. It is
// called when its startd has answered, whatever it has said.
func Resized(d *Dispatcher, a roost.AttemptID, r RequestID, size roost.Resources) {
	c := d.busy[a.Task]
	if c == nil || c.Attempt != a {
		return
	}
	c.resizing = false
	if c.Request == r && c.Resources == size {
		return
	}
	n := d.nodes[c.Node]
	d.removeFromNode(n, c.ID)
	d.shrunkRequests[c.Request] = true
	c.shrunk = c.shrunk || !c.Resources.FitsIn(size)
	c.Request, c.Resources = r, size
	d.addToNode(n, c)
	d.inside.woken[a.Task.Job.Seq] = true // an alloc may have room now
	if c.isInside() {
		d.inside.woken[c.alloc.Job.Seq] = true
	}
}

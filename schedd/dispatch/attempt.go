package dispatch

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/plant"
)

// Started notes that the processes of an attempt run. It reports whether this is news.
func (d *Dispatcher) Started(nodeName string, a roost.AttemptID) bool {
	c := d.busy[a.Task]
	if c == nil || c.Node != nodeName || c.Attempt != a || c.State != Busy || c.Running {
		return false
	}
	c.Running = true
	return true
}

// Has reports whether a node has an attempt, by what it was given.
func (d *Dispatcher) Has(nodeName string, a roost.AttemptID) bool {
	c := d.busy[a.Task]
	return c != nil && c.Node == nodeName && c.Attempt == a
}

// Exited notes that an attempt's processes are gone and its output may be fetched. It reports whether this is news; an attempt that is not
// the present one is acknowledged at once, so that the node can forget it.
func (d *Dispatcher) Exited(now Instant, nodeName string, a roost.AttemptID) bool {
	c := d.busy[a.Task]
	if c != nil && plant.Is(plant.OldNews) {
		nodeName = c.Node
	}
	if c == nil || c.Node != nodeName || c.Attempt != a {
		if !d.work.Live(a) {
			d.emit(Acknowledge{nodeName, a})
		}
		return false
	}
	if c.State == Returning {
		return false // said again on a new session
	}
	d.enter(now, c, Returning)
	return true
}

// Finished tells that the end of an attempt is recorded: the node may forget it, and the claim takes the next task.
func (d *Dispatcher) Finished(now Instant, a roost.AttemptID) {
	c := d.busy[a.Task]
	if c == nil || c.Attempt != a {
		return
	}
	delete(d.busy, a.Task)
	d.emit(Acknowledge{c.Node, a})
	d.fill(now, c)
}

// Failed notes that an attempt has failed, and perhaps by the machine's doing: after so many in a row on one claim it is given back when the attempt is
// finished. With 0 it has gone well, and they are no longer in a row.
func (d *Dispatcher) Failed(a roost.AttemptID, most int) {
	c := d.busy[a.Task]
	if c == nil || c.Attempt != a {
		return
	}
	if c.failures++; most == 0 {
		c.failures = 0
	}
	c.leaving = c.leaving || most > 0 && c.failures >= most
}

// Expelled notes that an attempt had to leave its machine, by the machine's own will: then its claim ends there, too, and a task that were put on it would be
// lost at once. Where the schedd has asked for it the claim stays.
func (d *Dispatcher) Expelled(a roost.AttemptID) {
	if c := d.busy[a.Task]; c != nil && c.Attempt == a && !c.vacating {
		c.leaving = true
	}
}

// Vacate ends an attempt that is under way. On a node that is away it is sent as soon as that is back.
func (d *Dispatcher) Vacate(a roost.AttemptID, order VacateOrder) {
	c := d.busy[a.Task]
	if c == nil || c.Attempt != a || c.State != Busy {
		return
	}
	c.vacating, c.keep = true, order.Keep
	if d.nodes[c.Node].connected {
		d.emit(Vacate{c.Node, a, order})
	}
}

// ClaimLost takes a startd's word that a claim has ended there.
func (d *Dispatcher) ClaimLost(nodeName string, id uint64, reason string) {
	n := d.nodes[nodeName]
	if n == nil || n.claims[id] == nil {
		return
	}
	d.lose(n.claims[id], reason)
}

// lose drops a claim together with what ran on it.
func (d *Dispatcher) lose(c *Claim, reason string) {
	attempt, had := c.Attempt, c.State == Busy || c.State == Returning
	d.forget(c)
	if had {
		d.work.Lose(attempt, reason)
	}
}

package dispatch

import (
	"cmp"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
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

// HasAttempt reports whether a node has an attempt, by what it was given.
func (d *Dispatcher) HasAttempt(nodeName string, a roost.AttemptID) bool {
	c := d.busy[a.Task]
	return c != nil && c.Node == nodeName && c.Attempt == a
}

// LeaseOf returns the lease of the claim that has an attempt; 0: none has it.
func LeaseOf(d *Dispatcher, a roost.AttemptID) time.Duration {
	if c := d.busy[a.Task]; c != nil && c.Attempt == a {
		return c.Lease
	}
	return 0
}

// AttemptsOn lists the attempts that claims on a node have, in the order of their tasks.
func (d *Dispatcher) AttemptsOn(nodeName string) (list []roost.AttemptID) {
	n := d.nodes[nodeName]
	if n == nil {
		return nil
	}
	for _, c := range n.claims {
		if c.State == Busy || c.State == Exited {
			list = append(list, c.Attempt)
		}
	}
	slices.SortFunc(list, func(a, b roost.AttemptID) int {
		return cmp.Or(cmp.Compare(a.Task.Job.Seq, b.Task.Job.Seq), cmp.Compare(a.Task.Index, b.Task.Index))
	})
	return list
}

// Exited notes that an attempt's processes are gone and its output may be fetched. It
// reports whether this is news; an attempt that is not the present one is acknowledged at
// once, so that the node can forget it.
func (d *Dispatcher) Exited(now roost.BootTime, nodeName string, a roost.AttemptID) bool {
	c := d.busy[a.Task]
	if c != nil && mutant.Active(mutant.StaleExitAccepted) {
		nodeName = c.Node
	}
	if c == nil || c.Node != nodeName || c.Attempt != a {
		if !d.jobQueue.IsLive(a) {
			d.emit(AcknowledgeExit{nodeName, a})
		}
		return false
	}
	if c.State == Exited {
		return false // said again on a new session
	}
	d.setState(now, c, Exited)
	return true
}

// Finished notes that the end of an attempt is recorded. The node may forget the attempt,
// and the claim takes the next task.
func (d *Dispatcher) Finished(now roost.BootTime, a roost.AttemptID) {
	c := d.busy[a.Task]
	if c == nil || c.Attempt != a {
		return
	}
	delete(d.busy, a.Task)
	d.emit(AcknowledgeExit{c.Node, a})
	if d.jobQueue.ReusesClaim(a.Task) && !c.resizing && d.nodes[c.Node].connected && !d.isUnavailable(now, c) &&
		!allocsOf(d).isTooMuch(c) {
		c.releaseAtEnd = false // of the failures that the queue counts itself
		d.setState(now, c, Restarting)
		d.restarting[a.Task] = c
		RestartTask(d, now, a.Task)
		return
	}
	d.assignNext(now, c)
}

// RestartTask puts the next attempt of a task on the claim that waits for it. A claim
// whose task is not to run there any more becomes free.
func RestartTask(d *Dispatcher, now roost.BootTime, t roost.TaskID) {
	c := d.restarting[t]
	if c == nil {
		return
	}
	if !d.jobQueue.ReusesClaim(t) || allocsOf(d).isTooMuch(c) {
		delete(d.restarting, t)
		d.assignNext(now, c)
		return
	}
	if attempt, ok := d.jobQueue.AssignTask(t, c.Node, d.nodes[c.Node].address, c.ID); ok {
		delete(d.restarting, t)
		activate(d, now, c, attempt)
	}
}

// Failed notes that an attempt has failed, perhaps because of its machine. After most
// failures in a row on one claim, the claim is released when the attempt is finished.
// With most 0 the attempt went well, and the count starts again.
func (d *Dispatcher) Failed(a roost.AttemptID, most int) {
	c := d.busy[a.Task]
	if c == nil || c.Attempt != a {
		return
	}
	if c.failures++; most == 0 {
		c.failures = 0
	}
	c.releaseAtEnd = c.releaseAtEnd || most > 0 && c.failures >= most
}

// Evicted notes that a machine evicted an attempt by its own decision. Then the machine
// ends the claim too, and another task put on it would be lost at once. Where the schedd
// asked for the eviction the claim stays.
func (d *Dispatcher) Evicted(a roost.AttemptID) {
	if c := d.busy[a.Task]; c != nil && c.Attempt == a && !c.vacating {
		c.releaseAtEnd = true
	}
}

// Vacate ends an attempt that is under way. On a node that is away it is sent as soon as
// that is back.
func (d *Dispatcher) Vacate(a roost.AttemptID, order VacateOrder) {
	c := d.busy[a.Task]
	if c == nil || c.Attempt != a || c.State != Busy {
		return
	}
	c.vacating, c.withCheckpoint, c.releaseAtEnd = true, order.Checkpoint, c.releaseAtEnd || order.ReleaseClaim
	if d.nodes[c.Node].connected {
		d.emit(VacateAttempt{c.Node, a, order})
	}
}

// ClaimLost takes a startd's word that a claim has ended there.
func (d *Dispatcher) ClaimLost(nodeName string, id uint64, reason string) {
	n := d.nodes[nodeName]
	if n == nil || n.claims[id] == nil {
		return
	}
	d.loseClaim(n.claims[id], reason)
}

// loseClaim drops a claim together with what ran on it.
func (d *Dispatcher) loseClaim(c *Claim, reason string) {
	attempt, had := c.Attempt, c.State == Busy || c.State == Exited
	d.removeClaim(c)
	if had {
		d.jobQueue.RecordLost(attempt, reason)
	}
}

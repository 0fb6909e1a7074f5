package dispatch

import "github.com/roost-batch/roost"

// Silence is that of a node from which nothing is heard though a task was put on it.
type Silence struct {
	Node   string
	Since  Instant
	Lapses Instant // when the attempt is given up, if it stays so
}

// SilentOn says how long the node of a task has been silent; false when it is there, or the task is on none.
func (d *Dispatcher) SilentOn(t roost.TaskID) (s Silence, ok bool) {
	c := d.busy[t]
	if c == nil {
		return s, false
	}
	n := d.nodes[c.Node]
	if n.connected || n.away == 0 {
		return s, false
	}
	return Silence{c.Node, n.away, c.lapses(d.opt.KillGrace)}, true
}

package dispatch

import "github.com/roost-batch/roost"

// NodeSilence returns how long the node of a task has been silent. It returns false when
// the node is connected, or the task is on none.
type NodeSilence struct {
	Node     string
	Since    roost.BootTime
	LeaseEnd roost.BootTime // when the attempt is given up, if it stays so
}

// NodeSilence returns how long the node of a task has been silent. It is false when the
// node is connected, or the task has no node.
func (d *Dispatcher) NodeSilence(t roost.TaskID) (s NodeSilence, ok bool) {
	c := d.busy[t]
	if c == nil {
		return s, false
	}
	n := d.nodes[c.Node]
	if n.connected || n.awaySince == 0 {
		return s, false
	}
	return NodeSilence{c.Node, n.awaySince, c.lostAt(n.awaySince, d.options.KillGrace)}, true
}

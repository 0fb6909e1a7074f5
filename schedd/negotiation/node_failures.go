package negotiation

import (
	"time"

	"github.com/roost-batch/roost"
)

// nodeFailures counts how often tasks have failed on nodes, so that a claim there is
// given to another task. The leader keeps a whole request from a node when as many of its
// tasks as it wants are to be kept from it; which task a claim gets is the schedd's
// choice. A schedd that starts again counts anew.
type nodeFailures struct {
	tasks map[roost.TaskID]map[string]nodeFailure
	pairs int
}

// nodeFailure is what is known of one task on one node.
type nodeFailure struct {
	times      int
	avoidUntil time.Time // kept apart; zero: not
}

// maxNodeFailures bounds the pairs of task and node that are remembered.
const maxNodeFailures = 10_000

// noteFailure counts a failure of a task on a node.
func (f *nodeFailures) noteFailure(now time.Time, t roost.TaskID, node string) {
	if f.pairs >= maxNodeFailures {
		f.sweep(now)
	}
	nodes := f.tasks[t]
	known, seen := nodes[node]
	if !seen && f.pairs >= maxNodeFailures {
		return
	}
	if nodes == nil {
		nodes = map[string]nodeFailure{}
		if f.tasks == nil {
			f.tasks = map[roost.TaskID]map[string]nodeFailure{}
		}
		f.tasks[t] = nodes
	}
	if !seen {
		f.pairs++
	}
	known.times++
	if length := roost.AvoidDuration(known.times); length > 0 {
		known.avoidUntil = now.Add(length)
	}
	nodes[node] = known
}

// isAvoidPair reports whether a task is to be kept from a node.
func (f *nodeFailures) isAvoidPair(now time.Time, t roost.TaskID, node string) bool {
	return now.Before(f.tasks[t][node].avoidUntil)
}

// removeFailures drops the failures of a task on a node where it went well. Without a
// node it drops all failures of a task that no longer runs.
func (f *nodeFailures) removeFailures(t roost.TaskID, node string) {
	nodes := f.tasks[t]
	if node == "" {
		f.pairs -= len(nodes)
		clear(nodes)
	} else if _, known := nodes[node]; known {
		f.pairs--
		delete(nodes, node)
	}
	if len(nodes) == 0 {
		delete(f.tasks, t)
	}
}

// AvoidedTasks says which tasks a claim on a node is not for; nil where it is for all.
func (l *LeaderConn) AvoidedTasks(node string) func(roost.TaskID) bool {
	if l.nodeFailures.pairs == 0 {
		return nil
	}
	return func(t roost.TaskID) bool { return l.nodeFailures.isAvoidPair(l.loop.Now(), t, node) }
}

// sweep drops the pairs that are not kept apart now.
func (f *nodeFailures) sweep(now time.Time) {
	for t, nodes := range f.tasks {
		for node, known := range nodes {
			if !now.Before(known.avoidUntil) {
				f.removeFailures(t, node)
			}
		}
	}
}

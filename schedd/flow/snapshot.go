package flow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// snapshotVersion is the first byte of a snapshot.
const snapshotVersion = 1

// Snapshot returns the state of the flow as bytes, without its definition. It has a byte
// for each node, and a few for each one that runs or was tried again.
func (r *Run) Snapshot() []byte {
	w := &snapshotWriter{to: make([]byte, 0, len(r.states)+64)}
	w.to = append(w.to, snapshotVersion)
	w.integers(int(r.phase), boolInt(r.halted), int(r.status), r.returned, r.number, boolInt(r.finalAgain))
	w.integers(r.limits.Jobs, r.limits.IdleTasks, r.limits.Pre, r.limits.Post, boolInt(r.limits.Categories != nil),
		len(r.limits.Categories))
	w.integers(r.limits.Categories...)
	w.integers(len(r.states))
	for _, s := range r.states {
		w.to = append(w.to, byte(s))
	}
	w.nodes(r.attempts, func(graph.NodeID) uint16 { return 0 })
	w.nodes(r.left, func(id graph.NodeID) uint16 { return r.definition.Graph.Node(id).Retry })
	writeSorted(w, r.results, func(p partResult) { w.integers(p.pre, p.job) })
	writeSorted(w, r.jobIdle, func(idle int) { w.integers(idle) })
	writeSorted(w, r.active, func(stopping bool) { w.integers(boolInt(stopping)) })
	stops := slices.DeleteFunc(slices.Clone(r.stops), func(id graph.NodeID) bool {
		stopping, runs := r.active[id]
		return !runs || stopping
	})
	w.integers(len(stops))
	for _, id := range stops {
		w.integers(int(id))
	}
	return w.to
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// snapshotWriter appends numbers to a snapshot.
type snapshotWriter struct{ to []byte }

func (w *snapshotWriter) integers(list ...int) {
	for _, n := range list {
		w.to = binary.AppendVarint(w.to, int64(n))
	}
}

// nodes writes the numbers of nodes that are not what they usually are.
func (w *snapshotWriter) nodes(list []uint16, usual func(graph.NodeID) uint16) {
	var other []int
	for id, n := range list {
		if n != usual(graph.NodeID(id)) {
			other = append(other, id, int(n))
		}
	}
	w.integers(len(other) / 2)
	w.integers(other...)
}

// writeSorted writes what is known of some nodes, in the order of their numbers.
func writeSorted[T any](w *snapshotWriter, of map[graph.NodeID]T, write func(T)) {
	w.integers(len(of))
	for _, id := range slices.Sorted(maps.Keys(of)) {
		w.integers(int(id))
		write(of[id])
	}
}

// errSnapshot says that bytes are no snapshot of this flow.
var errSnapshot = errors.New("flow: this is no snapshot of the flow")

// Restore returns the flow whose state a snapshot has. Nodes with equal priority that are
// ready begin in the order of the graph from then on.
func Restore(d *Definition, snapshot []byte) (*Run, error) {
	s := &snapshotReader{from: snapshot, nodes: d.Graph.Len()}
	if len(snapshot) == 0 || snapshot[0] != snapshotVersion {
		return nil, fmt.Errorf("%w: it begins with %.1x", errSnapshot, snapshot)
	}
	s.from = s.from[1:]
	r := newRun(d, Limits{})
	r.phase, r.halted, r.status = FlowPhase(s.integer(int(Ended))), s.integer(1) == 1, FlowStatus(s.integer(4))
	r.returned, r.number, r.finalAgain = s.signed(), s.integer(maxInteger), s.integer(1) == 1
	r.limits = Limits{Jobs: s.integer(maxInteger), IdleTasks: s.integer(maxInteger), Pre: s.integer(maxInteger),
		Post: s.integer(maxInteger)}
	if s.integer(1) == 1 {
		r.limits.Categories = []int{}
	}
	for range s.integer(1 << 16) {
		r.limits.Categories = append(r.limits.Categories, s.signed())
	}
	if s.integer(maxInteger) != len(r.states) || len(s.from) < len(r.states) {
		return nil, errSnapshot
	}
	for i := range r.states {
		if r.states[i] = NodeState(s.from[i]); r.states[i] >= stateCount {
			return nil, errSnapshot
		}
	}
	s.from = s.from[len(r.states):]
	for id, n := range d.Graph.Nodes() {
		r.left[id] = n.Retry
	}
	for range s.integer(s.nodes) {
		r.attempts[s.node()] = uint16(s.integer(1<<16 - 1))
	}
	for range s.integer(s.nodes) {
		r.left[s.node()] = uint16(s.integer(1<<16 - 1))
	}
	for range s.integer(s.nodes) {
		r.results[s.node()] = partResult{s.signed(), s.signed()}
	}
	for range s.integer(s.nodes) {
		r.jobIdle[s.node()] = s.integer(maxInteger)
	}
	for range s.integer(s.nodes) {
		r.active[s.node()] = s.integer(1) == 1
	}
	for range s.integer(s.nodes) {
		r.stops = append(r.stops, s.node())
	}
	if s.failed || len(s.from) > 0 {
		return nil, errSnapshot
	}
	r.recount()
	return r, nil
}

// maxInteger bounds the numbers of a snapshot.
const maxInteger = 1 << 40

// snapshotReader reads numbers. After a wrong one all others are 0.
type snapshotReader struct {
	from   []byte
	nodes  int
	failed bool
}

func (s *snapshotReader) signed() int {
	n, size := binary.Varint(s.from)
	if size <= 0 || s.failed {
		s.failed, s.from = true, nil
		return 0
	}
	s.from = s.from[size:]
	return int(n)
}

// integer reads a number from 0 to most.
func (s *snapshotReader) integer(most int) int {
	n := s.signed()
	if n < 0 || n > most {
		s.failed, s.from = true, nil
		return 0
	}
	return n
}

func (s *snapshotReader) node() graph.NodeID { return graph.NodeID(s.integer(s.nodes - 1)) }

// recount makes what follows from the states of the nodes.
func (r *Run) recount() {
	r.counts = [stateCount]int{}
	for id, n := range r.definition.Graph.Nodes() {
		s := r.states[id]
		if r.waits[id] = n.Parents; r.isCounted(id) {
			r.counts[s]++
			for part, running := range partRuns {
				if s == running {
					r.running[part]++
				}
			}
			if s == JobRuns {
				r.categoryJobs[n.Category]++
			}
			if s.isReady() {
				r.addReady(id)
			}
		}
	}
	for id := range r.definition.Graph.Nodes() {
		for _, a := range r.definition.Graph.Children(id) {
			if r.states[id] == Done || r.states[id] == Failed && a.IsWeak() {
				r.waits[a.Child()]--
			}
		}
	}
	for _, idle := range r.jobIdle {
		r.idleTasks += idle
	}
}

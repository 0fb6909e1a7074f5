package eventlog

import (
	"slices"
	"strings"
)

// successRecord is the record of a task whose first attempt succeeded. Most tasks of most
// jobs are such, so it is small.
type successRecord struct {
	started, ended     int64
	wall, user, system int64
	maxRSS             int64
	usage              compactUsage
	node               uint32 // in the book's list
}

// sharedRecord is a record that tasks share which were held or removed together before
// any attempt of them was made. It is never written to.
type sharedRecord struct {
	TaskRecord
	tasks int
}

// TaskRecords keeps the records of a job's tasks. A million tasks that are held with one
// word must not cost a million records, so each task has a reference of four bytes: to a
// record of its own, to a note, or to the little that is kept of a success.
type TaskRecords struct {
	Tasks int // of the job
	*recordStore
}

// recordStore holds the records of a job. There is none while nothing is known of any
// task: of most queued jobs nothing is.
type recordStore struct {
	refs          []recordRef // empty while nothing is known of any task
	ownRecords    recycledSlice[*TaskRecord]
	sharedRecords recycledSlice[*sharedRecord]
	successes     recycledSlice[successRecord]
	// that the finished ran on, in the order of their first mention; behind a zero byte,
	// the place there
	nodes     []string
	nodeIndex map[string]uint32
}

// recordRef refers to the record of a task. The two highest bits say of what kind it is,
// the rest where it is. 0 is no record.
type recordRef uint32

const (
	refNone recordRef = iota << 30
	refOwn
	refShared
	refSuccess
	refKindMask = 3 << 30
)

func (r recordRef) kind() recordRef { return r & refKindMask }

func (r recordRef) index() uint32 { return uint32(r &^ refKindMask) }

// recycledSlice is a list whose places are used again.
type recycledSlice[T any] struct {
	items []T
	free  []uint32
}

func (s *recycledSlice[T]) add(x T) uint32 {
	if n := len(s.free); n > 0 {
		at := s.free[n-1]
		s.free = s.free[:n-1]
		s.items[at] = x
		return at
	}
	s.items = append(s.items, x)
	return uint32(len(s.items) - 1)
}

func (s *recycledSlice[T]) remove(at uint32) {
	var zero T
	s.items[at] = zero
	s.free = append(s.free, at)
}

// writable returns the store, and makes it if there is none.
func (b *TaskRecords) writable() *recordStore {
	if b.recordStore == nil {
		b.recordStore = &recordStore{}
	}
	return b.recordStore
}

func (b *TaskRecords) refOf(i int) recordRef {
	if b.recordStore == nil || i < 0 || i >= len(b.refs) {
		return 0
	}
	return b.refs[i]
}

// set replaces what is known of a task.
func (b *TaskRecords) set(i int, to recordRef) {
	if b.writable(); len(b.refs) == 0 {
		b.refs = make([]recordRef, b.Tasks)
	}
	was := b.refs[i]
	b.refs[i] = to
	switch was.kind() {
	case refOwn:
		b.ownRecords.remove(was.index())
	case refShared:
		n := b.sharedRecords.items[was.index()]
		if n.tasks--; n.tasks == 0 {
			b.sharedRecords.remove(was.index())
		}
	case refSuccess:
		b.successes.remove(was.index())
	}
	if to.kind() == refShared {
		b.sharedRecords.items[to.index()].tasks++
	}
}

// Get returns what is known of a task, to be read and not written; nil when it is
// nothing.
func (b *TaskRecords) Get(i int) *TaskRecord {
	switch r := b.refOf(i); r.kind() {
	case refOwn:
		return b.ownRecords.items[r.index()]
	case refShared:
		return &b.sharedRecords.items[r.index()].TaskRecord
	case refSuccess:
		return b.expandSuccess(b.successes.items[r.index()])
	}
	return nil
}

// IsShared reports whether a task shares its record with others.
func (b *TaskRecords) IsShared(i int) bool { return b.refOf(i).kind() == refShared }

// HasOwn reports whether any task ever had a record of its own.
func (b *TaskRecords) HasOwn() bool {
	return b.recordStore != nil && len(b.ownRecords.items) > 0
}

// IsUniform reports whether the same is known of all tasks, and no attempt was made.
func (b *TaskRecords) IsUniform() bool {
	if b.recordStore == nil {
		return true
	}
	for i := range b.refs {
		if b.refs[i] != b.refs[0] {
			return false
		}
	}
	kind := b.refOf(0).kind()
	return kind == refNone || kind == refShared
}

// Resize gives a job of uniform records another number of tasks.
func (b *TaskRecords) Resize(tasks int) {
	b.Tasks = tasks
	if known := b.refOf(0); known != 0 {
		b.refs = slices.Repeat([]recordRef{known}, tasks)
		b.sharedRecords.items[known.index()].tasks = tasks
	} else if b.recordStore != nil {
		b.refs = nil
	}
}

// Grow gives a job more tasks, of which nothing is known.
func (b *TaskRecords) Grow(tasks int) {
	if b.Tasks = tasks; b.recordStore != nil && len(b.refs) > 0 {
		b.refs = append(b.refs, make([]recordRef, tasks-len(b.refs))...)
	}
}

// HasImages reports whether there is a good image of any task.
func (b *TaskRecords) HasImages() bool {
	if b.recordStore == nil {
		return false
	}
	for _, r := range b.ownRecords.items {
		if r.NewestImage() != nil {
			return true
		}
	}
	return false
}

// Own returns the record of one task alone; nil when it has none. Only tasks have one
// that had an attempt which is live or did not succeed at once, or whose job has
// conditions.
func (b *TaskRecords) Own(i int) *TaskRecord {
	if r := b.refOf(i); r.kind() == refOwn {
		return b.ownRecords.items[r.index()]
	}
	return nil
}

// HasSucceeded reports whether the last attempt of a task did.
func (b *TaskRecords) HasSucceeded(i int) bool {
	if r := b.Own(i); r != nil {
		return r.Exit != nil && r.Exit.IsSuccess()
	}
	return b.refOf(i).kind() == refSuccess
}

// MakeOwn returns the record of a task's own, and makes one when there is none.
func (b *TaskRecords) MakeOwn(i int) *TaskRecord {
	r := b.Own(i)
	if r != nil {
		return r
	}
	r = &TaskRecord{}
	if known := b.Get(i); known != nil {
		*r = *known
	}
	b.set(i, refOwn|recordRef(b.writable().ownRecords.add(r)))
	return r
}

// Drop drops what is known of a task.
func (b *TaskRecords) Drop(i int) {
	if b.refOf(i) != 0 {
		b.set(i, 0)
	}
}

// Compact shrinks the record of a task that has just succeeded, if that loses nothing
// that anybody asks for.
func (b *TaskRecords) Compact(i int) {
	r := b.Own(i)
	x := r.Exit
	rest := TaskRecord{
		Attempt: 1, Node: r.Node, Address: r.Address, Claim: r.Claim, Placement: r.Placement, Assigned: r.Assigned,
		Started: r.Started, Ended: r.Ended, Exit: x,
	}
	used, exact := compactOf(x.Used)
	if *r != rest || !exact ||
		*x != (AttemptExit{Wall: x.Wall, User: x.User, System: x.System, MaxRSS: x.MaxRSS, Used: x.Used}) {
		return
	}
	f := successRecord{started: r.Started, ended: r.Ended, wall: x.Wall, user: x.User, system: x.System,
		maxRSS: x.MaxRSS, usage: used, node: b.nodeNumber(r.Node, r.Placement)}
	b.set(i, refSuccess|recordRef(b.successes.add(f)))
}

func (b *TaskRecords) expandSuccess(f successRecord) *TaskRecord {
	node, place, _ := strings.Cut(b.nodes[f.node], "\x00")
	return &TaskRecord{
		Attempt: 1, Node: node, Placement: place, Started: f.started, Ended: f.ended,
		Exit: &AttemptExit{Wall: f.wall, User: f.user, System: f.system, MaxRSS: f.maxRSS, Used: f.usage.usage()},
	}
}

// nodeNumber numbers the name of a node, with a place on it.
func (b *TaskRecords) nodeNumber(name, place string) uint32 {
	if place != "" {
		name += "\x00" + place
	}
	n, ok := b.writable().nodeIndex[name]
	if !ok {
		if b.nodeIndex == nil {
			b.nodeIndex = map[string]uint32{}
		}
		n = uint32(len(b.nodes))
		b.nodeIndex[name], b.nodes = n, append(b.nodes, name)
	}
	return n
}

// Share gives notes of one text to tasks, each call one; the first makes the note.
func (b *TaskRecords) Share(text TaskRecord) func(i int) {
	to := recordRef(0)
	return func(i int) {
		if to == 0 {
			to = refShared | recordRef(b.writable().sharedRecords.add(&sharedRecord{TaskRecord: text}))
		}
		b.set(i, to)
	}
}

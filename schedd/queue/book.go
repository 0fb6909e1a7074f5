package queue

import (
	"strings"

	"github.com/roost-batch/roost"
)

// record is what is known of a task beyond its state.
type record struct {
	attempt  roost.Attempt
	node     string
	address  string
	claim    uint64
	place    string // of the node, what it was given: see Event.Place
	assigned int64
	started  int64
	ended    int64
	own      int   // attempts that failed by the job's own doing
	machine  int   // attempts in a row that failed by a machine's
	spoiled  int64 // when such a one last counted
	live     bool
	hold     string // why it is held, or will be when its attempt has ended
	held     bool   // desired: held
	by       string
	removed  bool // desired: removed
	reason   string
	force    bool
	owner    string // why it stands still for the owner of its machine; empty: it does not
	both     bool   // and besides a user wants it to
	requeued bool   // desired: that the live attempt ends, and another begins
	exit     *Exit
	saves    *saves // nil: no checkpoint of it was ever taken or tried
}

// finished is all that is kept of a task whose first attempt succeeded: most tasks of most jobs, so it is small.
type finished struct {
	started, ended     int64
	wall, user, system int64
	maxRSS             int64
	used               small
	node               uint32 // in the book's list
}

// note is a record that tasks share which were held or removed together before any attempt of them was made. It is never written to.
type note struct {
	record
	tasks int
}

// book keeps the records of a job's tasks. A million tasks that are held with one word must not cost a million records, so each task has a
// reference of four bytes: to a record of its own, to a note, or to the little that is kept of a success.
type book struct {
	refs     []ref // empty while nothing is known of any task
	own      slab[*record]
	notes    slab[*note]
	finished slab[finished]
	nodes    []string // that the finished ran on, in the order of their first mention; behind a zero byte, the place there
	nodeAt   map[string]uint32
}

// ref says what is known of a task: its two highest bits of what kind it is, the rest where it is. 0 is nothing.
type ref uint32

const (
	kindNone ref = iota << 30
	kindOwn
	kindNote
	kindFinished
	kinds = 3 << 30
)

func (r ref) kind() ref     { return r & kinds }
func (r ref) place() uint32 { return uint32(r &^ kinds) }

// slab is a list whose places are used again.
type slab[T any] struct {
	items []T
	free  []uint32
}

func (s *slab[T]) put(x T) uint32 {
	if n := len(s.free); n > 0 {
		at := s.free[n-1]
		s.free = s.free[:n-1]
		s.items[at] = x
		return at
	}
	s.items = append(s.items, x)
	return uint32(len(s.items) - 1)
}

func (s *slab[T]) drop(at uint32) {
	var zero T
	s.items[at] = zero
	s.free = append(s.free, at)
}

func (b *book) ref(i int) ref {
	if i < 0 || i >= len(b.refs) {
		return 0
	}
	return b.refs[i]
}

// set replaces what is known of a task in a job of that many.
func (b *book) set(i, tasks int, to ref) {
	if len(b.refs) == 0 {
		b.refs = make([]ref, tasks)
	}
	was := b.refs[i]
	b.refs[i] = to
	switch was.kind() {
	case kindOwn:
		b.own.drop(was.place())
	case kindNote:
		n := b.notes.items[was.place()]
		if n.tasks--; n.tasks == 0 {
			b.notes.drop(was.place())
		}
	case kindFinished:
		b.finished.drop(was.place())
	}
	if to.kind() == kindNote {
		b.notes.items[to.place()].tasks++
	}
}

// at returns what is known of a task, to be read and not written; nil when it is nothing.
func (b *book) at(i int) *record {
	switch r := b.ref(i); r.kind() {
	case kindOwn:
		return b.own.items[r.place()]
	case kindNote:
		return &b.notes.items[r.place()].record
	case kindFinished:
		return b.expand(b.finished.items[r.place()])
	}
	return nil
}

// written returns the record of a task's own, nil when it has none: only such tasks have had an attempt that is live or did not succeed at once.
func (b *book) written(i int) *record {
	if r := b.ref(i); r.kind() == kindOwn {
		return b.own.items[r.place()]
	}
	return nil
}

// succeeded reports whether the last attempt of a task did.
func (b *book) succeeded(i int) bool {
	if r := b.written(i); r != nil {
		return r.exit != nil && r.exit.Success()
	}
	return b.ref(i).kind() == kindFinished
}

// of returns the record of a task's own, and makes one when there is none.
func (j *job) of(i int) *record {
	r := j.book.written(i)
	if r != nil {
		return r
	}
	r = &record{}
	if known := j.book.at(i); known != nil {
		*r = *known
	}
	j.book.set(i, len(j.state), kindOwn|ref(j.book.own.put(r)))
	return r
}

// forget drops what is known of a task.
func (j *job) forget(i int) {
	if j.book.ref(i) != 0 {
		j.book.set(i, len(j.state), 0)
	}
}

// compact keeps less of a task that has just succeeded, if nothing is lost by it that anybody can ask for.
func (j *job) compact(i int) {
	r := j.book.written(i)
	x := r.exit
	rest := record{
		attempt: 1, node: r.node, address: r.address, claim: r.claim, place: r.place, assigned: r.assigned, started: r.started, ended: r.ended, exit: x,
	}
	used, exact := smaller(x.Used)
	if *r != rest || !exact || *x != (Exit{Wall: x.Wall, User: x.User, System: x.System, MaxRSS: x.MaxRSS, Used: x.Used}) {
		return
	}
	f := finished{started: r.started, ended: r.ended, wall: x.Wall, user: x.User, system: x.System, maxRSS: x.MaxRSS, used: used, node: j.book.node(r.node, r.place)}
	j.book.set(i, len(j.state), kindFinished|ref(j.book.finished.put(f)))
}

func (b *book) expand(f finished) *record {
	node, place, _ := strings.Cut(b.nodes[f.node], "\x00")
	return &record{
		attempt: 1, node: node, place: place, started: f.started, ended: f.ended,
		exit: &Exit{Wall: f.wall, User: f.user, System: f.system, MaxRSS: f.maxRSS, Used: f.used.whole()},
	}
}

// node numbers the name of a node, with a place on it.
func (b *book) node(name, place string) uint32 {
	if place != "" {
		name += "\x00" + place
	}
	n, ok := b.nodeAt[name]
	if !ok {
		if b.nodeAt == nil {
			b.nodeAt = map[string]uint32{}
		}
		n = uint32(len(b.nodes))
		b.nodeAt[name], b.nodes = n, append(b.nodes, name)
	}
	return n
}

// annotate gives notes of one text to tasks, each call one; the first makes the note.
func (j *job) annotate(text record) func(i int) {
	to := ref(0)
	return func(i int) {
		if to == 0 {
			to = kindNote | ref(j.book.notes.put(&note{record: text}))
		}
		j.book.set(i, len(j.state), to)
	}
}

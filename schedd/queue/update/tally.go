package update

import (
	"math/bits"
	"slices"
)

// Tally is all tasks of a job, added up for the decisions about them. What has changed
// is marked, and nothing else is looked at again.
//
// The naive way looks at each task for each decision. An update of n tasks takes a few
// decisions for each of them, and so n² looks. Here tasks are added up in blocks, and the
// blocks in a binary tree:
//
//	a task has changed       its block is added up anew, and so are the nodes above it
//	time has passed          so are the blocks in which it changes a task
//	how many are ...         a few nodes are added up
//	which is the next ...    nodes are left out that have none
//
// Each of these takes O(log n). What all tasks depend on changes seldom: the revision
// that they get, and how many there are. Then all of them are looked at.
type Tally struct {
	fact    func(i int) TaskFact // what the job knows of a task
	view    tallyView
	size    int        // blocks for which there is room: a power of 2
	nodes   []tallySum // from 1 on; the children of k are 2k and 2k+1, and blocks come from size on
	changed []int      // blocks to be added up anew
	isMark  []bool     // by block: it is among them
	all     bool       // every block is
	failed  []int      // the tasks that had failed when they were added up
	fresh   []int      // tasks that were found to fail in this decision, ascending
	looks   int        // at tasks, counted
}

// tallyBlock is how many tasks a block has.
const tallyBlock = 32

// tallyView is all that the sums depend on beside the facts.
type tallyView struct {
	update       *Update
	policy       *Policy
	count, tasks int
	now          int64
	target, to   uint32
	undo         bool
	only         []Range
	alike        []uint32
	proof, ready int64
}

// NewTally returns the tally of a job, which is asked for what it knows of each task.
func NewTally(fact func(i int) TaskFact) *Tally { return &Tally{fact: fact, all: true} }

// Mark notes that a task has changed.
func (t *Tally) Mark(i int) {
	if b := i / tallyBlock; !t.all && b < len(t.isMark) && !t.isMark[b] {
		t.isMark[b], t.changed = true, append(t.changed, b)
	}
}

// MarkAll notes that any task may have changed.
func (t *Tally) MarkAll() { t.all = true }

// LookedAt is the time of the last look, or another one that is later.
func (t *Tally) LookedAt(at int64) int64 { return max(at, t.view.now) }

// look brings the sums up to date. The job has count tasks without its surge tasks.
func (t *Tally) look(u *Update, p *Policy, count, tasks int, now int64) {
	v := tallyView{update: u, policy: p, count: count, tasks: tasks, now: now, target: u.Target(), to: u.To,
		undo: u.State.isUndo(), only: u.Tasks, alike: u.Alike, proof: int64(p.Settling), ready: int64(p.ReadyWithin)}
	all := t.all || !v.isLike(&t.view)
	t.view = v
	if all {
		t.lookAtAll()
	} else {
		t.markFailed(u.Failed)
		for _, b := range t.changed {
			t.isMark[b] = false
			t.addUp(b)
			for k := (t.size + b) / 2; k > 0; k /= 2 {
				t.combine(k)
			}
		}
		t.changed = t.changed[:0]
		t.expire(1)
	}
	t.failed = append(t.failed[:0], u.Failed...)
}

// isLike reports whether sums of another view are right where no task has changed since.
func (v *tallyView) isLike(w *tallyView) bool {
	return w.update != nil && v.count == w.count && v.tasks == w.tasks && v.now >= w.now && v.target == w.target &&
		v.to == w.to && v.undo == w.undo && v.proof == w.proof && v.ready == w.ready &&
		slices.Equal(v.only, w.only) && slices.Equal(v.alike, w.alike)
}

// markFailed marks tasks that have failed since, or that have not any more.
func (t *Tally) markFailed(failed []int) {
	if slices.Equal(failed, t.failed) {
		return
	}
	for a, b := failed, t.failed; len(a)+len(b) > 0; {
		switch {
		case len(a) > 0 && len(b) > 0 && a[0] == b[0]:
			a, b = a[1:], b[1:]
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			t.Mark(a[0])
			a = a[1:]
		default:
			t.Mark(b[0])
			b = b[1:]
		}
	}
}

// lookAtAll adds up everything anew.
func (t *Tally) lookAtAll() {
	blocks := (t.view.tasks + tallyBlock - 1) / tallyBlock
	t.size = 1 << bits.Len(uint(max(blocks, 1)-1))
	t.nodes = append(t.nodes[:0], make([]tallySum, 2*t.size)...)
	t.isMark, t.changed, t.all = append(t.isMark[:0], make([]bool, blocks)...), t.changed[:0], false
	for b := range blocks {
		t.addUp(b)
	}
	for k := t.size - 1; k > 0; k-- {
		t.combine(k)
	}
}

// addUp looks at the tasks of a block.
func (t *Tally) addUp(b int) {
	sum := &t.nodes[t.size+b]
	*sum = tallySum{}
	for i := b * tallyBlock; i < min((b+1)*tallyBlock, t.view.tasks); i++ {
		sum.add(t.task(i))
	}
}

func (t *Tally) combine(k int) {
	t.nodes[k] = t.nodes[2*k]
	t.nodes[k].merge(&t.nodes[2*k+1])
}

// expire adds up the blocks below a node in which time has changed a task.
func (t *Tally) expire(k int) {
	if at := t.nodes[k].again; at == 0 || at > t.view.now {
		return
	}
	if k >= t.size {
		t.addUp(k - t.size)
		return
	}
	t.expire(2 * k)
	t.expire(2*k + 1)
	t.combine(k)
}

// sum adds up the tasks from one index to before another.
func (t *Tally) sum(from, to int) (s tallySum) {
	to = min(to, t.view.tasks)
	for ; from < to && from%tallyBlock != 0; from++ {
		s.add(t.task(from))
	}
	for ; to > from && to%tallyBlock != 0 && to != t.view.tasks; to-- {
		s.add(t.task(to - 1))
	}
	if from >= to {
		return s
	}
	a, b := t.size+from/tallyBlock, t.size+(to+tallyBlock-1)/tallyBlock
	for ; a < b; a, b = a/2, b/2 {
		if a%2 == 1 {
			s.merge(&t.nodes[a])
			a++
		}
		if b%2 == 1 {
			b--
			s.merge(&t.nodes[b])
		}
	}
	return s
}

// next returns the first task of some kinds, from one index to before another. It is -1
// if there is none.
func (t *Tally) next(from, to int, of kindSet) int { return t.search(1, 0, from, to, of, false) }

// last is next from the end.
func (t *Tally) last(from, to int, of kindSet) int { return t.search(1, 0, from, to, of, true) }

// search looks below a node whose first task is known.
func (t *Tally) search(k, first, from, to int, of kindSet, backward bool) int {
	tasks := t.size * tallyBlock >> (bits.Len(uint(k)) - 1)
	if to = min(to, t.view.tasks); from >= first+tasks || to <= first || !t.nodes[k].has(of) {
		return -1
	}
	if k >= t.size {
		return t.searchBlock(max(first, from), min(first+tasks, to), of, backward)
	}
	children := [2]int{0, 1}
	if backward {
		children = [2]int{1, 0}
	}
	for _, c := range children {
		if i := t.search(2*k+c, first+c*tasks/2, from, to, of, backward); i >= 0 {
			return i
		}
	}
	return -1
}

func (t *Tally) searchBlock(from, to int, of kindSet, backward bool) int {
	for n := range to - from {
		i := from + n
		if backward {
			i = to - 1 - n
		}
		if t.task(i).kinds&of != 0 {
			return i
		}
	}
	return -1
}

// indexOf returns the index of the n-th task of a kind, counted from 1. It is -1 if there
// are fewer.
func (t *Tally) indexOf(n int, of taskKind) int {
	if n > int(t.nodes[1].counts[of]) {
		return -1
	}
	k := 1
	for k < t.size {
		if k *= 2; n > int(t.nodes[k].counts[of]) {
			n -= int(t.nodes[k].counts[of])
			k++
		}
	}
	for i := (k - t.size) * tallyBlock; ; i++ {
		if t.task(i).kinds&of.set() != 0 {
			if n--; n == 0 {
				return i
			}
		}
	}
}

// fails has a task have failed that was found not to come up.
func (t *Tally) fails(i int) {
	at, _ := slices.BinarySearch(t.fresh, i)
	t.fresh = slices.Insert(t.fresh, at, i)
	t.Mark(i)
}

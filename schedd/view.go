package schedd

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/table"
)

// view is what lists are read from: a table of the jobs in the queue, that the loop brings up to date when somebody asks. Naively the loop would answer
// each question; but of a thousand clients that each ask every few seconds nearly all ask for what has not changed. So the loop makes the rows that
// have changed since the last question, once for all who ask meanwhile, and everything else is done by those who ask. What they are told is on disk, and at least
// as new as their question.
type view struct {
	current   atomic.Pointer[table.Table]
	version   atomic.Uint64 // counts what has changed
	published atomic.Uint64 // the version that the table has
	swept     atomic.Int64  // when the rows of tasks that run were made anew, unix nanoseconds
	active    atomic.Int64  // how many there are
	reasons   sync.Map      // request -> why it waits, as a row in its own encoding

	mu    sync.Mutex
	next  *refresh // that has not begun: who asks now waits for it
	going bool     // one is under way, or asked for

	// ---- owned by the loop ----
	dirty    map[uint64]bool // jobs whose rows are old
	restless map[uint64]bool // jobs whose rows tell what changes by itself: what they use, how long a node has been silent
}

// refresh is an update that some wait for.
type refresh struct {
	done    chan struct{}
	version uint64
	rows    map[uint64]*table.Row
}

// viewSweepEvery is how old what changes by itself may be in a list.
const viewSweepEvery = time.Second

// viewTurn is how many rows the loop makes before it does something else.
const viewTurn = 500

// stale notes that something of a job has changed. The loop calls it.
func (v *view) stale(seq uint64) {
	if v.dirty == nil { // nobody has asked yet
		return
	}
	v.dirty[seq] = true
	v.version.Add(1)
}

// fresh returns a table that has everything that was on disk when it was asked for.
func (s *Schedd) fresh(ctx context.Context) (*table.Table, error) {
	v := &s.view
	if t := v.current.Load(); t != nil && v.version.Load() == v.published.Load() &&
		(v.active.Load() == 0 || time.Now().UnixNano()-v.swept.Load() < int64(viewSweepEvery)) {
		return t, nil
	}
	v.mu.Lock()
	if v.next == nil {
		v.next = &refresh{done: make(chan struct{})}
	}
	r, begin := v.next, !v.going
	v.going = true
	v.mu.Unlock()
	if begin && !s.post(ctx, op(s.refreshView)) {
		v.mu.Lock()
		v.going = false // whoever comes next begins anew
		v.mu.Unlock()
		return nil, s.gone(ctx)
	}
	select {
	case <-r.done:
		return v.current.Load(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.life.Done():
		return nil, s.gone(ctx)
	}
}

// refreshView begins an update: of all jobs for the first who asks, and then of those that have changed.
func (s *Schedd) refreshView(now time.Time) {
	v := &s.view
	v.mu.Lock()
	r := v.next
	v.next = nil
	v.mu.Unlock()
	if v.dirty == nil {
		v.dirty, v.restless = map[uint64]bool{}, map[uint64]bool{}
		for _, id := range s.queue.Match(queue.Filter{}) {
			v.dirty[id.Seq] = true
		}
	}
	if now.UnixNano()-v.swept.Load() >= int64(viewSweepEvery) {
		v.swept.Store(now.UnixNano())
		for seq := range v.restless {
			v.dirty[seq] = true
		}
	}
	r.version, r.rows = v.version.Load(), make(map[uint64]*table.Row, len(v.dirty))
	seqs := make([]uint64, 0, len(v.dirty))
	for seq := range v.dirty {
		seqs = append(seqs, seq)
	}
	clear(v.dirty)
	s.makeRows(r, seqs)
}

// makeRows makes some of the rows that an update needs, and has the loop go on with the others in its next turn. When all are made, they are shown as soon
// as what they rest on is on disk: with the next batch, for which they do not press where there is something to write.
func (s *Schedd) makeRows(r *refresh, seqs []uint64) {
	n := min(viewTurn, len(seqs))
	for _, seq := range seqs[:n] {
		r.rows[seq] = s.tableRow(seq)
	}
	if rest := seqs[n:]; len(rest) > 0 {
		s.outside.again(func(time.Time) { s.makeRows(r, rest) })
		return
	}
	s.view.active.Store(int64(len(s.view.restless)))
	s.pending.after = append(s.pending.after, func() { go s.show(r) })
	if len(s.pending.events) == 0 {
		s.pending.urgent = true
	}
}

// show publishes an update, and begins the next if somebody waits for one.
func (s *Schedd) show(r *refresh) {
	v := &s.view
	t := v.current.Load()
	if t == nil {
		t = &table.Table{}
	}
	v.current.Store(t.With(r.rows))
	v.published.Store(r.version)
	close(r.done)
	v.mu.Lock()
	v.going = v.next != nil
	again := v.going
	v.mu.Unlock()
	if again {
		s.post(s.life, op(s.refreshView))
	}
}

// tableRow makes the row of a job; nil when it is not in the queue.
func (s *Schedd) tableRow(seq uint64) *table.Row {
	v := &s.view
	st, ok := s.queue.Status(seq)
	if !ok {
		delete(v.restless, seq)
		return nil
	}
	m := s.explainedNow(s.row(&st, ""), &st)
	if st.Task != nil && st.Task.State.Active() {
		v.restless[seq] = true
	} else {
		delete(v.restless, seq)
	}
	ad, _ := s.queue.Ad(seq)
	row := newTableRow(m, &st, ad)
	if waitsForMachine(m, &st) {
		row.Waits = uint64(st.Request)
	}
	return row
}

// newTableRow makes the row of a job, wherever it is.
func newTableRow(m *wire.JobStatus, st *queue.Status, ad string) *table.Row {
	return &table.Row{
		Seq: st.Job.Seq, Owner: st.Owner, UID: st.UID, Submitted: st.Submitted, Rank: st.Rank, Since: st.Since, Array: st.Array, Text: encoded(m), Ad: ad,
		Final: st.Counts[roost.Completed]+st.Counts[roost.Removed] == st.Tasks,
	}
}

// encoded is a row in its own encoding. Texts that come from users may be no UTF-8, which messages have to be.
func encoded(m *wire.JobStatus) []byte {
	text, err := proto.Marshal(m)
	if err == nil {
		return text
	}
	for _, field := range []*string{&m.Name, &m.Owner, &m.Queue, &m.Reservation, &m.Reason, &m.Brief, &m.Node, &m.Dumpable} {
		*field = strings.ToValidUTF8(*field, "\ufffd")
	}
	if m.Exit != nil {
		m.Exit.Reason = strings.ToValidUTF8(m.Exit.Reason, "\ufffd")
	}
	if text, err = proto.Marshal(m); err != nil {
		text, _ = proto.Marshal(&wire.JobStatus{Id: m.Id, State: m.State, Tasks: m.Tasks, Counts: m.Counts, Submitted: m.Submitted, Array: m.Array})
	}
	return text
}

// reason keeps why a request waits, for the lists.
func (v *view) reason(id queue.RequestID, e *wire.Explanation) {
	v.reasons.Store(uint64(id), encoded(&wire.JobStatus{Reason: e.GetSummary(), Brief: e.GetBrief(), Start: e.GetStart()}))
}

// text is a row as it is sent, with why it waits behind it: of a message in its encoding, what comes later wins.
func (v *view) text(r *table.Row) []byte {
	if r.Waits == 0 {
		return r.Text
	}
	why, ok := v.reasons.Load(r.Waits)
	if !ok {
		return r.Text
	}
	return append(r.Text[:len(r.Text):len(r.Text)], why.([]byte)...)
}

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

// jobTable is what lists are read from: a table of the jobs in the queue, that the loop
// brings up to date when somebody asks. Naively the loop would answer each question; but
// of a thousand clients that each ask every few seconds nearly all ask for what has not
// changed. So the loop makes the rows that have changed since the last question, once for
// all who ask meanwhile, and everything else is done by those who ask. What they are told
// is on disk, and at least as new as their question.
type jobTable struct {
	current    atomic.Pointer[table.Table]
	version    atomic.Uint64 // counts what has changed
	published  atomic.Uint64 // the version that the table has
	sweptAt    atomic.Int64  // when the rows of tasks that run were made anew, unix nanoseconds
	activeJobs atomic.Int64  // how many there are
	reasons    sync.Map      // request -> why it waits, as a row in its own encoding

	mu         sync.Mutex
	next       *tableRefresh // that has not begun: who asks now waits for it
	refreshing bool          // one is under way, or asked for

	// ---- owned by the loop ----
	dirty map[uint64]bool // jobs whose rows are old
	// jobs whose rows tell what changes by itself: what they use, how long a node has
	// been silent
	volatileJobs map[uint64]bool
}

// tableRefresh is an update that some wait for.
type tableRefresh struct {
	done    chan struct{}
	version uint64
	rows    map[uint64]*table.JobRow
}

// tableSweepInterval is how old what changes by itself may be in a list.
const tableSweepInterval = time.Second

// tableTurn is how many rows the loop makes before it does something else.
const tableTurn = 500

// markChanged notes that something of a job has changed. The loop calls it.
func (v *jobTable) markChanged(seq uint64) {
	if v.dirty == nil { // nobody has asked yet
		return
	}
	v.dirty[seq] = true
	v.version.Add(1)
}

// freshTable returns a table that has everything that was on disk when it was asked for.
func (s *Schedd) freshTable(ctx context.Context) (*table.Table, error) {
	v := &s.jobTable
	if t := v.current.Load(); t != nil && v.version.Load() == v.published.Load() &&
		(v.activeJobs.Load() == 0 || time.Now().UnixNano()-v.sweptAt.Load() < int64(tableSweepInterval)) {
		return t, nil
	}
	v.mu.Lock()
	if v.next == nil {
		v.next = &tableRefresh{done: make(chan struct{})}
	}
	r, begin := v.next, !v.refreshing
	v.refreshing = true
	v.mu.Unlock()
	if begin && !s.postEvent(ctx, loopCall(s.startTableRefresh)) {
		v.mu.Lock()
		v.refreshing = false // whoever comes next begins anew
		v.mu.Unlock()
		return nil, s.stoppingError(ctx)
	}
	select {
	case <-r.done:
		return v.current.Load(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.daemonContext.Done():
		return nil, s.stoppingError(ctx)
	}
}

// startTableRefresh begins an update: of all jobs for the first who asks, and then of
// those that have changed.
func (s *Schedd) startTableRefresh(now time.Time) {
	v := &s.jobTable
	v.mu.Lock()
	r := v.next
	v.next = nil
	v.mu.Unlock()
	if v.dirty == nil {
		v.dirty, v.volatileJobs = map[uint64]bool{}, map[uint64]bool{}
		for _, id := range s.queue.MatchingJobs(queue.JobFilter{}) {
			v.dirty[id.Seq] = true
		}
	}
	if now.UnixNano()-v.sweptAt.Load() >= int64(tableSweepInterval) {
		v.sweptAt.Store(now.UnixNano())
		for seq := range v.volatileJobs {
			v.dirty[seq] = true
		}
	}
	r.version, r.rows = v.version.Load(), make(map[uint64]*table.JobRow, len(v.dirty))
	seqs := make([]uint64, 0, len(v.dirty))
	for seq := range v.dirty {
		seqs = append(seqs, seq)
	}
	clear(v.dirty)
	s.buildRows(r, seqs)
}

// buildRows makes some of the rows that an update needs, and has the loop go on with the
// others in its next turn. When all are made, they are shown as soon as what they rest on
// is on disk: with the next batch, for which they do not press where there is something
// to write.
func (s *Schedd) buildRows(r *tableRefresh, seqs []uint64) {
	n := min(tableTurn, len(seqs))
	for _, seq := range seqs[:n] {
		r.rows[seq] = s.tableRow(seq)
	}
	if rest := seqs[n:]; len(rest) > 0 {
		s.effects.postLater(func(time.Time) { s.buildRows(r, rest) })
		return
	}
	s.jobTable.activeJobs.Store(int64(len(s.jobTable.volatileJobs)))
	s.pending.callbacks = append(s.pending.callbacks, func() { go s.publishTable(r) })
	if len(s.pending.events) == 0 {
		s.pending.urgent = true
	}
}

// publishTable publishes an update, and begins the next if somebody waits for one.
func (s *Schedd) publishTable(r *tableRefresh) {
	v := &s.jobTable
	t := v.current.Load()
	if t == nil {
		t = &table.Table{}
	}
	v.current.Store(t.WithRows(r.rows))
	v.published.Store(r.version)
	close(r.done)
	v.mu.Lock()
	v.refreshing = v.next != nil
	again := v.refreshing
	v.mu.Unlock()
	if again {
		s.postEvent(s.daemonContext, loopCall(s.startTableRefresh))
	}
}

// Row makes the row of a job; nil when it is not in the queue.
func (s *Schedd) tableRow(seq uint64) *table.JobRow {
	v := &s.jobTable
	st, ok := s.queue.Status(seq)
	if !ok {
		delete(v.volatileJobs, seq)
		return nil
	}
	m := s.addLocalStatus(s.statusRow(&st, ""), &st)
	if st.Task != nil && st.Task.State.IsActive() {
		v.volatileJobs[seq] = true
	} else {
		delete(v.volatileJobs, seq)
	}
	ad, _ := s.queue.JobAd(seq)
	row := newTableRow(m, &st, ad)
	if waitsForMachine(m, &st) {
		row.RequestID = uint64(st.Request)
	}
	return row
}

// newTableRow makes the row of a job, wherever it is.
func newTableRow(m *wire.JobStatus, st *queue.JobStatus, ad string) *table.JobRow {
	return &table.JobRow{
		Seq: st.Job.Seq, Owner: st.Owner, UID: st.UID, Submitted: st.Submitted, OrderSeq: st.OrderRank,
		OrderTime: st.OrderTime, IsArray: st.Array, Text: encodeRow(m), Ad: ad,
		IsFinal: st.Counts[roost.Completed]+st.Counts[roost.Removed] == st.Tasks,
	}
}

// encodeRow is a row in its own encoding. Texts that come from users may be no UTF-8,
// which messages have to be.
func encodeRow(m *wire.JobStatus) []byte {
	text, err := proto.Marshal(m)
	if err == nil {
		return text
	}
	for _, field := range []*string{&m.Name, &m.Owner, &m.Queue, &m.Reservation, &m.Reason, &m.Brief, &m.Node,
		&m.Dumpable} {
		*field = strings.ToValidUTF8(*field, "\ufffd")
	}
	if m.Exit != nil {
		m.Exit.Reason = strings.ToValidUTF8(m.Exit.Reason, "\ufffd")
	}
	if text, err = proto.Marshal(m); err != nil {
		text, _ = proto.Marshal(&wire.JobStatus{Id: m.Id, State: m.State, Tasks: m.Tasks, Counts: m.Counts,
			Submitted: m.Submitted, Array: m.Array})
	}
	return text
}

// DeleteReason drops why a request waits.
func (v *jobTable) DeleteReason(id queue.RequestID) { v.reasons.Delete(uint64(id)) }

// ClearReasons drops why all requests wait.
func (v *jobTable) ClearReasons() { v.reasons.Clear() }

// SetReason notes why a request waits, for the lists.
func (v *jobTable) SetReason(id queue.RequestID, e *wire.Explanation) {
	v.reasons.Store(uint64(id),
		encodeRow(&wire.JobStatus{Reason: e.GetSummary(), Brief: e.GetBrief(), Start: e.GetStart()}))
}

// rowText is a row as it is sent, with why it waits behind it: of a message in its
// encoding, what comes later wins.
func (v *jobTable) rowText(r *table.JobRow) []byte {
	if r.RequestID == 0 {
		return r.Text
	}
	why, ok := v.reasons.Load(r.RequestID)
	if !ok {
		return r.Text
	}
	return append(r.Text[:len(r.Text):len(r.Text)], why.([]byte)...)
}

package api

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
	"github.com/roost-batch/roost/schedd/queue/adtext"
	"github.com/roost-batch/roost/schedd/table"
)

// JobTable is a copy of the job queue that lists are read from. The loop brings it up to
// date when somebody asks. Naively the loop would answer each question; but
// of a thousand clients that each ask every few seconds nearly all ask for what has not
// changed. So the loop makes the rows that have changed since the last question, once for
// all who ask meanwhile, and everything else is done by those who ask. What they are told
// is on disk, and at least as new as their question.
type JobTable struct {
	current    atomic.Pointer[table.Table]
	version    atomic.Uint64 // counts what has changed
	published  atomic.Uint64 // the version that the table has
	sweptAt    atomic.Int64  // when the rows of tasks that run were made anew, unix nanoseconds
	activeJobs atomic.Int64  // how many there are
	reasons    sync.Map      // request -> why it waits, as a row in its own encoding

	directQueries atomic.Int32 // for some jobs, answered without the table

	mu         sync.Mutex
	next       *tableRefresh // that has not begun: who asks now waits for it
	refreshing bool          // one is under way, or asked for

	// ---- owned by the loop ----
	dirty map[uint64]bool // jobs whose rows are old
	// jobs whose rows tell what changes by itself: what they use, how long a node has
	// been silent
	volatileJobs map[uint64]bool
	texts        *adtext.Packer // nil until there is a row
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
func (v *JobTable) markChanged(seq uint64) {
	if v.dirty == nil { // nobody has asked yet
		return
	}
	v.dirty[seq] = true
	v.version.Add(1)
}

// freshTable returns a table that has everything that was on disk when it was asked for.
func (v *jobView) freshTable(ctx context.Context) (*table.Table, error) {
	j := v.jobTable
	if t := j.current.Load(); t != nil && j.version.Load() == j.published.Load() &&
		(j.activeJobs.Load() == 0 || time.Now().UnixNano()-j.sweptAt.Load() < int64(tableSweepInterval)) {
		return t, nil
	}
	j.mu.Lock()
	if j.next == nil {
		j.next = &tableRefresh{done: make(chan struct{})}
	}
	r, begin := j.next, !j.refreshing
	j.refreshing = true
	j.mu.Unlock()
	if begin && !v.loop.PostCall(ctx, v.startTableRefresh) {
		j.mu.Lock()
		j.refreshing = false // whoever comes next begins anew
		j.mu.Unlock()
		return nil, v.loop.StoppingError(ctx)
	}
	select {
	case <-r.done:
		return j.current.Load(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-v.daemonContext.Done():
		return nil, v.loop.StoppingError(ctx)
	}
}

// startTableRefresh begins an update: of all jobs for the first who asks, and then of
// those that have changed.
func (v *jobView) startTableRefresh(now time.Time) {
	j := v.jobTable
	j.mu.Lock()
	r := j.next
	j.next = nil
	j.mu.Unlock()
	if j.dirty == nil {
		j.dirty, j.volatileJobs = map[uint64]bool{}, map[uint64]bool{}
		for _, id := range v.queue.MatchingJobs(queue.JobFilter{}) {
			j.dirty[id.Seq] = true
		}
	}
	if now.UnixNano()-j.sweptAt.Load() >= int64(tableSweepInterval) {
		j.sweptAt.Store(now.UnixNano())
		for seq := range j.volatileJobs {
			j.dirty[seq] = true
		}
	}
	r.version, r.rows = j.version.Load(), make(map[uint64]*table.JobRow, len(j.dirty))
	seqs := make([]uint64, 0, len(j.dirty))
	for seq := range j.dirty {
		seqs = append(seqs, seq)
	}
	j.dirty = map[uint64]bool{} // it may have been large, and a map does not shrink
	v.buildRows(r, seqs)
}

// buildRows makes some of the rows that an update needs, and schedules the others for the
// loop's next turn. When all rows are made, they are published as soon as the records
// that they depend on are on disk. That is after the next batch; the rows do not force
// this batch where there is something to write.
func (v *jobView) buildRows(r *tableRefresh, seqs []uint64) {
	n := min(tableTurn, len(seqs))
	for _, seq := range seqs[:n] {
		r.rows[seq] = v.tableRow(seq)
	}
	if rest := seqs[n:]; len(rest) > 0 {
		v.loop.PostLater(func(time.Time) { v.buildRows(r, rest) })
		return
	}
	v.jobTable.activeJobs.Store(int64(len(v.jobTable.volatileJobs)))
	v.loop.AfterNextCommit(func() { go v.publishTable(r) })
}

// publishTable publishes an update, and begins the next if somebody waits for one.
func (v *jobView) publishTable(r *tableRefresh) {
	j := v.jobTable
	t := j.current.Load()
	if t == nil {
		t = &table.Table{}
	}
	j.current.Store(t.WithRows(r.rows))
	j.published.Store(r.version)
	close(r.done)
	j.mu.Lock()
	j.refreshing = j.next != nil
	again := j.refreshing
	j.mu.Unlock()
	if again {
		v.loop.PostCall(v.daemonContext, v.startTableRefresh)
	}
}

// tableRow makes the row of a job; nil when it is not in the queue.
func (v *jobView) tableRow(seq uint64) *table.JobRow {
	row, volatile := v.makeTableRow(seq)
	if volatile {
		v.jobTable.volatileJobs[seq] = true
	} else {
		delete(v.jobTable.volatileJobs, seq)
	}
	return row
}

// makeTableRow makes the row of a job, and reports whether it tells what changes by
// itself.
func (v *jobView) makeTableRow(seq uint64) (row *table.JobRow, volatile bool) {
	st, ok := v.queue.Status(seq)
	if !ok {
		return nil, false
	}
	m := v.addLocalStatus(v.statusRow(&st, ""), &st)
	row = newTableRow(m, &st, v.queue.PackedAd(seq))
	row.Text = v.jobTable.pack(st.UID, row.Text)
	if waitsForMachine(m, &st) {
		row.RequestID = uint64(st.Request)
	}
	return row, st.Task != nil && st.Task.State.IsActive()
}

// newTableRow makes the row of a job, wherever it is.
func newTableRow(m *wire.JobStatus, st *queue.JobStatus, ad adtext.Packed) *table.JobRow {
	text := encodeRow(m) // it may change m
	return &table.JobRow{
		Seq: st.Job.Seq, Owner: st.Owner, UID: st.UID, Submitted: st.Submitted, OrderSeq: st.OrderRank,
		OrderTime: st.OrderTime, IsArray: st.Array, Text: adtext.Plain(string(text)), Ad: ad, Terms: termsOf(m),
		IsFinal: st.Counts[roost.Completed]+st.Counts[roost.Removed] == st.Tasks,
	}
}

// pack returns the text of a row as its difference from that of another job of the user.
func (v *JobTable) pack(uid uint32, text adtext.Packed) adtext.Packed {
	if v.texts == nil {
		v.texts = adtext.NewPacker()
	}
	return v.texts.Pack(uid, text.String())
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
func (v *JobTable) DeleteReason(id queue.RequestID) { v.reasons.Delete(uint64(id)) }

// ClearReasons drops why all requests wait.
func (v *JobTable) ClearReasons() { v.reasons.Clear() }

// SetReason notes why a request waits, for the lists.
func (v *JobTable) SetReason(id queue.RequestID, e *wire.Explanation) {
	v.reasons.Store(uint64(id),
		encodeRow(&wire.JobStatus{Reason: e.GetSummary(), Brief: e.GetBrief(), Start: e.GetStart()}))
}

// rowText returns the encoded row of a job, followed by the reason why the job waits. In
// an encoded message the later value of a field replaces the earlier one.
func (v *JobTable) rowText(r *table.JobRow) []byte {
	text := []byte(r.Text.String())
	if r.RequestID == 0 {
		return text
	}
	if why, ok := v.reasons.Load(r.RequestID); ok {
		text = append(text, why.([]byte)...)
	}
	return text
}

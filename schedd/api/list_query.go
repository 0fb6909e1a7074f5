package api

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/peers"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/table"
)

// queryTurn bounds how many jobs a query looks at in one turn of the loop. A long listing
// must not hold up the queue.
const queryTurn = 500

// Query lists jobs, or their tasks: those of the queue, and on demand those of the past.
func (s *Service) Query(req *wire.QueryRequest, stream grpc.ServerStreamingServer[wire.JobStatus]) error {
	who, err := s.callerOf(stream.Context())
	if err != nil {
		return err
	}
	sel := req.GetSelection()
	if sel != nil {
		if sel.Selectors, err = resolveJobWords(stream.Context(), s, who, sel.Selectors, req.GetHistory()); err != nil {
			return err
		}
	}
	here, there := splitWords(s, sel.GetSelectors())
	if len(there) == 0 {
		return s.ListJobs(stream.Context(), req, who, stream.Send)
	}
	return listInBothQueues(stream.Context(), s, req, who, here, there, stream.Send)
}

// ListJobs lists jobs of this schedd, as its peers ask for it.
func (s *Service) ListJobs(ctx context.Context, req *wire.QueryRequest, who queue.CallerIdentity,
	send func(*wire.JobStatus) error) error {
	return s.runListQuery(ctx, req, who, sendStatus(send))
}

// sendStatus sends rows as messages.
func sendStatus(send func(*wire.JobStatus) error) func(peers.ListRow) error {
	return func(t peers.ListRow) error {
		m, err := t.StatusMessage()
		if err == nil {
			err = send(m)
		}
		return err
	}
}

// runListQuery tells to what a query asks for, with what who may see of it.
func (s *Service) runListQuery(ctx context.Context, req *wire.QueryRequest, who queue.CallerIdentity,
	to func(peers.ListRow) error) error {
	l := &listQuery{Service: s, ctx: ctx, req: req, user: who, to: to, limit: int(req.GetLimit())}
	if req.GetLimit() == 0 {
		l.limit = -1
	}
	if req.GetNode() != "" {
		return l.runNode()
	}
	if req.GetTable() {
		return l.runTable()
	}
	if req.GetNewest() {
		return l.runNewest()
	}
	return l.runQuery()
}

// listQuery is one query under way.
type listQuery struct {
	*Service
	ctx         context.Context
	req         *wire.QueryRequest
	user        queue.CallerIdentity
	to          func(peers.ListRow) error
	limit       int // rows that may still be sent; below 0 for any number
	seen        map[uint64]bool
	states      selectionFilter        // of tasks, by their states
	conditions  rowConditions          // with newest
	attributes  func(name string) bool // with table: attributes of ads
	pendingRows []*table.JobRow        // with table: rows that wait for company
}

func (l *listQuery) runQuery() error {
	var chosen []selectionTarget
	var err error
	if l.states, err = newFilter(l.req.GetSelection(), l.user); err != nil {
		return err
	}
	if aerr := l.loop.CallLoop(l.ctx, func(time.Time) {
		chosen, err = l.selectTargets(l.req.GetSelection(), l.user, false)
	}); aerr != nil {
		return aerr
	}
	if err != nil {
		return err
	}
	if l.limit > 0 && len(l.req.GetSelection().GetSelectors()) == 0 && len(chosen) > l.limit {
		chosen = chosen[len(chosen)-l.limit:] // the newest
	}
	if len(l.req.GetSelection().GetSelectors()) == 0 {
		slices.Reverse(chosen) // the newest first
	}
	l.seen = make(map[uint64]bool, len(chosen))
	var none map[string]error
	if l.req.GetHistory() {
		chosen, none = l.takeHistoryWords(chosen)
	}
	for len(chosen) > 0 {
		n := min(queryTurn, len(chosen))
		if err := l.sendTargets(chosen[:n]); err != nil {
			return err
		}
		chosen = chosen[n:]
	}
	if !l.req.GetHistory() {
		return nil
	}
	return l.sendHistoryRows(none)
}

// takeHistoryWords takes out the words that name nothing in the queue and may yet name
// jobs of the history.
func (l *listQuery) takeHistoryWords(chosen []selectionTarget) (rest []selectionTarget, none map[string]error) {
	none = make(map[string]error)
	rest = slices.DeleteFunc(chosen, func(t selectionTarget) bool {
		_, several := selectionFilter{}.historySelector(t.text)
		if t.err != nil && several {
			none[t.text] = t.err
		}
		return t.err != nil && several
	})
	return rest, none
}

// sendTargets sends the rows of some targets. Those that have left the queue come from
// the history, if it was asked for.
func (l *listQuery) sendTargets(targets []selectionTarget) error {
	var rows []*wire.JobStatus
	var missing []selectionTarget
	long := false
	if err := l.callLoopDurable(l.ctx, func(time.Time) {
		long = slices.ContainsFunc(targets, l.isLong)
		for _, t := range targets {
			if _, ok := l.queue.Status(t.Job.Seq); t.err != nil || !ok || t.Job.Host != l.node.Name {
				missing = append(missing, t)
			} else if l.seen[t.Job.Seq] = true; !long {
				rows = l.targetRows(rows, l.queue, t.TaskSelector, true)
			}
		}
	}); err != nil {
		return err
	}
	if long { // each by itself, to keep them in order
		return l.sendLongTargets(targets)
	}
	if err := l.sendAll(rows); err != nil {
		return err
	}
	for _, t := range missing {
		if err := l.sendMissing(t); err != nil {
			return err
		}
	}
	return nil
}

// taskTurn is how many tasks of a job the loop looks at before it does something else.
const taskTurn = 2000

// isLong reports whether a target has more tasks to list than the loop can list in one
// turn.
func (l *listQuery) isLong(t selectionTarget) bool {
	return l.req.GetTasks() && t.err == nil && t.Job.Host == l.node.Name && l.queue.TaskCount(t.Job.Seq) > taskTurn
}

// sendLongTargets sends the rows of targets, and sends those of very many tasks in
// pieces. A million rows at once would stop the queue for seconds and take a gigabyte.
func (l *listQuery) sendLongTargets(targets []selectionTarget) error {
	for _, t := range targets {
		for next, more := 0, true; more; {
			var rows []*wire.JobStatus
			gone, first := false, next
			if err := l.callLoopDurable(l.ctx, func(time.Time) {
				if gone = !l.isLong(t); !gone {
					rows, next, more = l.listTurn(l.queue, t.TaskSelector, first, true)
				}
			}); err != nil {
				return err
			}
			if gone && first == 0 {
				more, l.seen[t.Job.Seq] = false, false
				if err := l.sendTargets([]selectionTarget{t}); err != nil {
					return err
				}
			} else if gone { // it has left the queue meanwhile, and the rest of it is in the history
				past, _, err := l.history.Job(t.Job.Seq)
				if err != nil {
					return err
				}
				rows, next, more = l.listTurn(past, t.TaskSelector, first, false)
			}
			if err := l.sendAll(rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// listTurn lists a target's tasks from first on, as many as fit into one turn. It returns
// from where the next turn goes on, and whether there is one. What lies between the tasks
// that are wanted costs no turns.
func (l *listQuery) listTurn(q *queue.Queue, t queue.TaskSelector, first int,
	present bool) (rows []*wire.JobStatus, next int, more bool) {
	first, ok := q.NextTaskIn(t, first, l.states.States, l.states.WithFailedTask)
	if !ok {
		return nil, first, false
	}
	next = first + taskTurn
	if part := t.Intersect(first, next-1); len(part.Ranges) > 0 {
		rows = l.targetRows(nil, q, part, present)
	}
	return rows, next, next < q.TaskCount(t.Job.Seq) && l.limit != 0
}

func (l *listQuery) sendAll(rows []*wire.JobStatus) error {
	for _, row := range rows {
		if err := l.sendRow(row); err != nil {
			return err
		}
	}
	return nil
}

func (l *listQuery) sendMissing(t selectionTarget) error {
	if t.err != nil {
		return t.err
	}
	if l.seen[t.Job.Seq] {
		return nil
	}
	past, _, err := l.history.Job(t.Job.Seq)
	if err != nil || !l.req.GetHistory() || t.Job.Host != l.node.Name {
		return l.mustBeQueued(t.TaskSelector)
	}
	there, err := past.LocateTasks(t.TaskSelector)
	if err != nil {
		return err
	}
	l.seen[t.Job.Seq] = true
	if !l.req.GetTasks() {
		return l.sendAll(l.targetRows(nil, past, there, false))
	}
	for next, more := 0, true; more; {
		var rows []*wire.JobStatus
		rows, next, more = l.listTurn(past, there, next, false)
		if err := l.sendAll(rows); err != nil {
			return err
		}
	}
	return nil
}

// sendHistoryRows sends the rows of the jobs in the history that the selection names.
// Without words these are all jobs that meet the conditions; otherwise they are those of
// them that a word for several jobs matches. none has the errors of the words that
// matched nothing before. A word that matches nothing in the history either gives its
// error.
func (l *listQuery) sendHistoryRows(none map[string]error) error {
	f, err := newFilter(l.req.GetSelection(), l.user)
	if err != nil {
		return err
	}
	words := l.req.GetSelection().GetSelectors()
	if len(words) == 0 {
		_, err = l.sendMatchingHistory(f)
		return err
	}
	for _, word := range words {
		narrowed, several := f.historySelector(word)
		if !several {
			continue // it was told already, wherever the job is
		}
		found, err := l.sendMatchingHistory(narrowed)
		if err == nil && !found {
			err = none[word]
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sendMatchingHistory sends the rows of the jobs in the history that a filter admits. The
// newest come first. It reports whether there was one.
func (l *listQuery) sendMatchingHistory(f selectionFilter) (found bool, err error) {
	env := constraintEnv()
	var serr error
	err = l.history.Each(func(seq uint64, past *queue.Queue) bool {
		if l.limit == 0 {
			return false
		}
		st, _ := past.Status(seq)
		if !f.admits(past, st, env) {
			return true
		}
		found = true
		if l.seen[seq] {
			return true
		}
		l.seen[seq] = true
		for _, row := range l.targetRows(nil, past, queue.TaskSelector{Job: st.Job}, false) {
			if serr = l.sendRow(row); serr != nil {
				return false
			}
		}
		return true
	})
	if serr != nil {
		return found, serr
	}
	return found, err
}

// targetRows adds what is to be told of one target.
func (l *listQuery) targetRows(rows []*wire.JobStatus, q *queue.Queue, t queue.TaskSelector,
	present bool) (all []*wire.JobStatus) {
	ad := ""
	st, _ := q.Status(t.Job.Seq)
	if l.req.GetAds() && present {
		defer func(before int, depends []string) {
			for _, row := range all[before:] {
				row.Depends = depends
			}
		}(len(rows), q.DependencyText(t.Job.Seq))
	}
	discreet := l.req.GetAds() && !mayReadAd(l.user, &st)
	if l.req.GetAds() {
		ad, _ = q.JobAd(t.Job.Seq)
	}
	if l.req.GetColumns() && l.req.GetAds() && !discreet {
		defer func(before int, columns []*wire.Column) {
			for _, row := range all[before:] {
				row.Columns = columns
			}
		}(len(rows), columnsOf(q, t.Job.Seq))
	}
	if discreet {
		ad = publicAd(ad)
		defer func(before int) {
			for _, row := range all[before:] {
				row.Discreet = true
			}
		}(len(rows))
	}
	only, isOne := q.SingleTask(t)
	switch {
	case l.req.GetTasks():
		q.EachTaskIn(t, l.states.States, l.states.WithFailedTask, func(one queue.JobStatus) bool {
			rows = append(rows, l.finishRow(l.singleTaskRow(&one, ad), &one, present))
			return true
		})
	case isOne:
		if one, ok := q.TaskStatus(only); ok {
			rows = append(rows, l.finishRow(l.singleTaskRow(&one, ad), &one, present))
		}
	default:
		row := l.statusRow(&st, ad)
		if st.Array && l.req.GetAds() {
			row.Remaining = q.WaitingIndexes(t.Job.Seq)
		}
		rows = append(rows, l.finishRow(row, &st, present))
	}
	return rows
}

// maxColumnBytes bounds the values of a job that are sent with its status.
const maxColumnBytes = 2 << 20

// columnsOf returns what differs between the tasks of a job, if it is not too long.
func columnsOf(q *queue.Queue, seq uint64) (columns []*wire.Column) {
	spec, _ := q.SubmitSpec(seq)
	size := 0
	for _, c := range spec.Columns {
		for _, v := range c.Values {
			if size += len(v) + 2; size > maxColumnBytes {
				return nil
			}
		}
		columns = append(columns, &wire.Column{Name: c.Name, Values: c.Values})
	}
	return columns
}

func (l *listQuery) finishRow(m *wire.JobStatus, st *queue.JobStatus, present bool) *wire.JobStatus {
	if l.req.GetWindows() {
		l.addWindows(m, st)
	}
	if present {
		return l.addLiveStatus(m, st)
	}
	m.Checkpoints, m.Checkpointed = 0, 0 // they went when it left the queue
	return m
}

func (l *listQuery) sendRow(row *wire.JobStatus) error {
	if l.limit == 0 {
		return nil
	}
	l.limit--
	return l.to(peers.ListRow{SubmittedAt: row.GetSubmitted(), Status: row})
}

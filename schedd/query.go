package schedd

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/table"
)

// queryTurn is how many jobs the loop looks at before it does something else: a long listing must not hold up the queue.
const queryTurn = 500

// Query lists jobs, or their tasks: those of the queue, and on demand those of the past.
func (s *service) Query(req *wire.QueryRequest, stream grpc.ServerStreamingServer[wire.JobStatus]) error {
	who, err := s.caller(stream.Context())
	if err != nil {
		return err
	}
	return s.list(stream.Context(), req, who, sendStatus(stream.Send))
}

// sendStatus sends rows as messages.
func sendStatus(send func(*wire.JobStatus) error) func(line) error {
	return func(t line) error {
		m, err := t.message()
		if err == nil {
			err = send(m)
		}
		return err
	}
}

// list tells to what a query asks for, with what who may see of it.
func (s *Schedd) list(ctx context.Context, req *wire.QueryRequest, who queue.Submitter, to func(line) error) error {
	l := &listing{Schedd: s, ctx: ctx, req: req, who: who, to: to, left: int(req.GetLimit())}
	if req.GetLimit() == 0 {
		l.left = -1
	}
	if req.GetTable() {
		return l.runTable()
	}
	return l.run()
}

// listing is one query under way.
type listing struct {
	*Schedd
	ctx    context.Context
	req    *wire.QueryRequest
	who    queue.Submitter
	to     func(line) error
	left   int // rows that may still be sent; below 0 for any number
	seen   map[uint64]bool
	chosen filter                 // of tasks, by their states
	wanted func(name string) bool // with table: attributes of ads
	held   []*table.Row           // with table: rows that wait for company
}

func (l *listing) run() error {
	var chosen []target
	var err error
	if l.chosen, err = newFilter(l.req.GetSelection(), l.who); err != nil {
		return err
	}
	if aerr := l.ask(l.ctx, func(time.Time) { chosen, err = l.choose(l.req.GetSelection(), l.who, false) }); aerr != nil {
		return aerr
	}
	if err != nil {
		return err
	}
	if l.left > 0 && len(l.req.GetSelection().GetSelectors()) == 0 && len(chosen) > l.left {
		chosen = chosen[len(chosen)-l.left:] // the newest
	}
	if len(l.req.GetSelection().GetSelectors()) == 0 {
		slices.Reverse(chosen) // the newest first
	}
	l.seen = make(map[uint64]bool, len(chosen))
	var none map[string]error
	if l.req.GetHistory() {
		chosen, none = l.setAside(chosen)
	}
	for len(chosen) > 0 {
		n := min(queryTurn, len(chosen))
		if err := l.tell(chosen[:n]); err != nil {
			return err
		}
		chosen = chosen[n:]
	}
	if !l.req.GetHistory() {
		return nil
	}
	return l.tellPast(none)
}

// setAside takes out the words that name nothing in the queue and may yet name jobs of the history.
func (l *listing) setAside(chosen []target) (rest []target, none map[string]error) {
	none = make(map[string]error)
	rest = slices.DeleteFunc(chosen, func(t target) bool {
		_, several := filter{}.past(t.text)
		if t.err != nil && several {
			none[t.text] = t.err
		}
		return t.err != nil && several
	})
	return rest, none
}

// tell sends the rows of some targets. Those that have left the queue come from the history, if it was asked for.
func (l *listing) tell(targets []target) error {
	var rows []*wire.JobStatus
	var missing []target
	long := false
	if err := l.askSettled(l.ctx, func(time.Time) {
		long = slices.ContainsFunc(targets, l.long)
		for _, t := range targets {
			if _, ok := l.queue.Status(t.Job.Seq); t.err != nil || !ok || t.Job.Host != l.node.Name {
				missing = append(missing, t)
			} else if l.seen[t.Job.Seq] = true; !long {
				rows = l.rows(rows, l.queue, t.Target, true)
			}
		}
	}); err != nil {
		return err
	}
	if long { // each by itself, to keep them in order
		return l.tellLong(targets)
	}
	if err := l.sendAll(rows); err != nil {
		return err
	}
	for _, t := range missing {
		if err := l.tellMissing(t); err != nil {
			return err
		}
	}
	return nil
}

// taskTurn is how many tasks of a job the loop looks at before it does something else.
const taskTurn = 2000

// long reports whether more tasks of a target are to be told than the loop has the time for in one turn.
func (l *listing) long(t target) bool {
	_, ok := l.queue.Status(t.Job.Seq)
	return l.req.GetTasks() && ok && t.err == nil && t.Job.Host == l.node.Name && l.queue.Numbers(t.Job.Seq) > taskTurn
}

// tellLong sends the rows of targets of which some have very many tasks, a piece of them at a time: a million rows at once would stop the queue for
// seconds, and take a gigabyte.
func (l *listing) tellLong(targets []target) error {
	for _, t := range targets {
		for first, more := 0, true; more; first += taskTurn {
			var rows []*wire.JobStatus
			gone := false
			if err := l.askSettled(l.ctx, func(time.Time) {
				if gone = !l.long(t); !gone {
					rows, more = l.piece(l.queue, t.Target, first, true)
				}
			}); err != nil {
				return err
			}
			if gone && first == 0 {
				more, l.seen[t.Job.Seq] = false, false
				if err := l.tell([]target{t}); err != nil {
					return err
				}
			} else if gone { // it has left the queue meanwhile, and the rest of it is in the history
				past, _, err := l.history.Job(t.Job.Seq)
				if err != nil {
					return err
				}
				rows, more = l.piece(past, t.Target, first, false)
			}
			if err := l.sendAll(rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// piece lists a turn's worth of the tasks of a target, from one of them on, and reports whether there are more.
func (l *listing) piece(q *queue.Queue, t queue.Target, first int, present bool) (rows []*wire.JobStatus, more bool) {
	if part := t.Within(first, first+taskTurn-1); len(part.Ranges) > 0 {
		rows = l.rows(nil, q, part, present)
	}
	return rows, first+taskTurn < q.Numbers(t.Job.Seq) && l.left != 0
}

func (l *listing) sendAll(rows []*wire.JobStatus) error {
	for _, row := range rows {
		if err := l.send(row); err != nil {
			return err
		}
	}
	return nil
}

func (l *listing) tellMissing(t target) error {
	if t.err != nil {
		return t.err
	}
	if l.seen[t.Job.Seq] {
		return nil
	}
	past, _, err := l.history.Job(t.Job.Seq)
	if err != nil || !l.req.GetHistory() || t.Job.Host != l.node.Name {
		return l.present(t.Target)
	}
	there, err := past.Locate(t.Target)
	if err != nil {
		return err
	}
	l.seen[t.Job.Seq] = true
	if !l.req.GetTasks() {
		return l.sendAll(l.rows(nil, past, there, false))
	}
	for first, more := 0, true; more; first += taskTurn {
		var rows []*wire.JobStatus
		rows, more = l.piece(past, there, first, false)
		if err := l.sendAll(rows); err != nil {
			return err
		}
	}
	return nil
}

// tellPast sends the rows of the jobs in the history that the selection means: all that meet the conditions, or those among them that a word for
// several jobs stands for. A word in none that stands for nothing there either is the error that it has there.
func (l *listing) tellPast(none map[string]error) error {
	f, err := newFilter(l.req.GetSelection(), l.who)
	if err != nil {
		return err
	}
	words := l.req.GetSelection().GetSelectors()
	if len(words) == 0 {
		_, err = l.tellMatching(f)
		return err
	}
	for _, word := range words {
		narrowed, several := f.past(word)
		if !several {
			continue // it was told already, wherever the job is
		}
		found, err := l.tellMatching(narrowed)
		if err == nil && !found {
			err = none[word]
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tellMatching sends the rows of the jobs in the history that a filter lets through, newest first, and reports whether there was one.
func (l *listing) tellMatching(f filter) (found bool, err error) {
	env := constraintEnv()
	var serr error
	err = l.history.Each(func(seq uint64, past *queue.Queue) bool {
		if l.left == 0 {
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
		for _, row := range l.rows(nil, past, queue.Target{Job: st.Job}, false) {
			if serr = l.send(row); serr != nil {
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

// rows adds what is to be told of one target.
func (l *listing) rows(rows []*wire.JobStatus, q *queue.Queue, t queue.Target, present bool) (all []*wire.JobStatus) {
	ad := ""
	st, _ := q.Status(t.Job.Seq)
	if l.req.GetAds() && present {
		defer func(before int, depends []string) {
			for _, row := range all[before:] {
				row.Depends = depends
			}
		}(len(rows), q.Depends(t.Job.Seq))
	}
	discreet := l.req.GetAds() && !mayRead(l.who, &st)
	if l.req.GetAds() {
		ad, _ = q.Ad(t.Job.Seq)
	}
	if discreet {
		ad = publicAd(ad)
		defer func(before int) {
			for _, row := range all[before:] {
				row.Discreet = true
			}
		}(len(rows))
	}
	only, isOne := q.One(t)
	switch {
	case l.req.GetTasks():
		q.EachTaskIn(t, l.chosen.States, l.chosen.Failed, func(one queue.Status) bool {
			rows = append(rows, l.finish(l.taskRow(&one, ad), &one, present))
			return true
		})
	case isOne:
		if one, ok := q.TaskStatus(only); ok {
			rows = append(rows, l.finish(l.taskRow(&one, ad), &one, present))
		}
	default:
		row := l.row(&st, ad)
		if st.Array && l.req.GetAds() {
			row.Remaining = q.Remaining(t.Job.Seq)
		}
		rows = append(rows, l.finish(row, &st, present))
	}
	return rows
}

func (l *listing) finish(m *wire.JobStatus, st *queue.Status, present bool) *wire.JobStatus {
	if present {
		return l.explained(m, st)
	}
	m.Checkpoints, m.Checkpointed = 0, 0 // they went when it left the queue
	return m
}

func (l *listing) send(row *wire.JobStatus) error {
	if l.left == 0 {
		return nil
	}
	l.left--
	return l.to(line{at: row.GetSubmitted(), status: row})
}

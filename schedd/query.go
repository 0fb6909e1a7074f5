package schedd

import (
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// queryTurn is how many jobs the loop looks at before it does something else: a long listing must not hold up the queue.
const queryTurn = 500

// Query lists jobs, or their tasks: those of the queue, and on demand those of the past.
func (s *service) Query(req *wire.QueryRequest, stream grpc.ServerStreamingServer[wire.JobStatus]) error {
	who, err := s.caller(stream.Context())
	if err != nil {
		return err
	}
	l := &listing{service: s, req: req, who: who, stream: stream, left: int(req.GetLimit())}
	if req.GetLimit() == 0 {
		l.left = -1
	}
	return l.run()
}

// listing is one query under way.
type listing struct {
	*service
	req    *wire.QueryRequest
	who    queue.Submitter
	stream grpc.ServerStreamingServer[wire.JobStatus]
	left   int // rows that may still be sent; below 0 for any number
	seen   map[uint64]bool
}

func (l *listing) run() error {
	var chosen []target
	var err error
	if aerr := l.ask(l.stream.Context(), func(time.Time) { chosen, err = l.choose(l.req.GetSelection(), l.who, false) }); aerr != nil {
		return aerr
	}
	if err != nil {
		return err
	}
	if l.left > 0 && len(l.req.GetSelection().GetSelectors()) == 0 && len(chosen) > l.left {
		chosen = chosen[len(chosen)-l.left:] // the newest
	}
	l.seen = make(map[uint64]bool, len(chosen))
	for len(chosen) > 0 {
		n := min(queryTurn, len(chosen))
		if err := l.tell(chosen[:n]); err != nil {
			return err
		}
		chosen = chosen[n:]
	}
	if !l.req.GetHistory() || len(l.req.GetSelection().GetSelectors()) > 0 {
		return nil
	}
	return l.tellPast()
}

// tell sends the rows of some targets. Those that have left the queue come from the history, if it was asked for.
func (l *listing) tell(targets []target) error {
	var rows []*wire.JobStatus
	var missing []target
	if err := l.ask(l.stream.Context(), func(time.Time) {
		for _, t := range targets {
			if _, ok := l.queue.Status(t.Job.Seq); t.err != nil || !ok || t.Job.Host != l.node.Name {
				missing = append(missing, t)
				continue
			}
			l.seen[t.Job.Seq] = true
			rows = l.rows(rows, l.queue, t.Target, true)
		}
	}); err != nil {
		return err
	}
	for _, row := range rows {
		if err := l.send(row); err != nil {
			return err
		}
	}
	for _, t := range missing {
		if err := l.tellMissing(t); err != nil {
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
	l.seen[t.Job.Seq] = true
	for _, row := range l.rows(nil, past, t.Target, false) {
		if err := l.send(row); err != nil {
			return err
		}
	}
	return nil
}

// tellPast sends the rows of all the jobs in the history that meet the conditions, newest first.
func (l *listing) tellPast() error {
	f, err := newFilter(l.req.GetSelection(), l.who)
	if err != nil {
		return err
	}
	env := &classad.Env{Now: time.Now()}
	var serr error
	err = l.history.Each(func(seq uint64, past *queue.Queue) bool {
		if l.seen[seq] || l.left == 0 {
			return l.left != 0
		}
		st, _ := past.Status(seq)
		if !f.admits(past, st, env) {
			return true
		}
		for _, row := range l.rows(nil, past, queue.Target{Job: st.Job}, false) {
			if serr = l.send(row); serr != nil {
				return false
			}
		}
		return true
	})
	if serr != nil {
		return serr
	}
	return err
}

// rows adds what is to be told of one target.
func (l *listing) rows(rows []*wire.JobStatus, q *queue.Queue, t queue.Target, present bool) []*wire.JobStatus {
	ad := ""
	if l.req.GetAds() {
		ad, _ = q.Ad(t.Job.Seq)
	}
	st, _ := q.Status(t.Job.Seq)
	switch {
	case l.req.GetTasks():
		q.EachTask(t, func(one queue.Status) bool {
			rows = append(rows, l.finish(l.taskRow(&one, ad), &one, present))
			return true
		})
	case len(t.Ranges) == 1 && t.Ranges[0].First == t.Ranges[0].Last:
		if one, ok := q.TaskStatus(t.Job.Task(t.Ranges[0].First)); ok {
			rows = append(rows, l.finish(l.taskRow(&one, ad), &one, present))
		}
	default:
		rows = append(rows, l.finish(l.row(&st, ad), &st, present))
	}
	return rows
}

func (l *listing) finish(m *wire.JobStatus, st *queue.Status, present bool) *wire.JobStatus {
	if present {
		return l.explained(m, st)
	}
	return m
}

func (l *listing) send(row *wire.JobStatus) error {
	if l.left == 0 {
		return nil
	}
	l.left--
	return l.stream.Send(row)
}

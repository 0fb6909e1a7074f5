package live

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/picture"
)

// Answer says when a job starts.
type Answer struct {
	Tasks   int       // of it, that wait
	Ahead   int       // tasks of the same request that start before them
	First   time.Time // when the first of them starts; zero: not within the time that was looked at
	Last    time.Time // when the last does; likewise
	Started int       // tasks that have started by the end
	Looked  time.Time // until when was looked
	Endless int       // tasks that run, or start meanwhile, of which nobody knows when they end
	Events  int
	Digest  uint64
	Course  []Reached // how many had started when, in order: at first what starts at once

	Explanation *match.Explanation // why it does not start, where it does not; nil where its queue, or the pool, is stopped
	Stopped     string             // that, in words
}

// Horizon is how far ahead a play looks.
const Horizon = 366 * 24 * time.Hour

// When says when a job of the checkpoint starts, by its id.
func When(of *picture.Checkpoint, id string, lengths Lengths) (*Answer, error) {
	f, err := find(of, id)
	if err != nil {
		return nil, err
	}
	return when(of, []*picture.Ask{f.ask}, f.ahead, f.tasks, lengths)
}

// WhenNew says when a job starts that is submitted at the moment of the checkpoint.
func WhenNew(of *picture.Checkpoint, job []*picture.Ask, lengths Lengths) (*Answer, error) {
	with, tasks := *of, 0
	with.Asks = append(append([]*picture.Ask{}, of.Asks...), job...)
	for i, a := range job {
		tasks += a.Own
		entered, err := enter(of, a)
		if err != nil {
			return nil, err
		}
		with.Asks[len(of.Asks)+i] = entered
	}
	return when(&with, with.Asks[len(of.Asks):], 0, tasks, lengths)
}

func when(of *picture.Checkpoint, job []*picture.Ask, ahead, tasks int, lengths Lengths) (*Answer, error) {
	p, err := NewPlay(of, lengths)
	if err != nil {
		return nil, err
	}
	if why := p.never(job); why != "" {
		return nil, fmt.Errorf("%w: it never starts: %s", roost.Invalid, why)
	}
	a := &Answer{Tasks: tasks, Ahead: ahead}
	enough := func() bool {
		n := -ahead
		for _, one := range job {
			n += p.Began(one.Key)
		}
		if n > 0 && a.First.IsZero() {
			a.First = p.Now()
		}
		if n >= tasks && a.Last.IsZero() {
			a.Last = p.Now()
		}
		a.Started = max(min(n, tasks), 0)
		a.see(p.now-of.Now.Unix(), a.Started)
		return n >= tasks
	}
	err = p.Run(p.now+int64(Horizon/time.Second), enough)
	if a.Looked, a.Events, a.Digest, a.Endless = p.Now(), p.Events, p.Digest(), p.Endless; a.Last.IsZero() && err == nil {
		policy := picture.NewPolicy(p.Ledger)
		if a.Stopped = policy.Stopped(job[0].Queue); a.Stopped == "" {
			a.Explanation = p.explain(job)
		}
	}
	return a, err
}

// never says why no machine could ever run a job, if that is so.
func (p *Play) never(job []*picture.Ask) string {
	for _, one := range job {
		x := p.explain([]*picture.Ask{one})
		if x == nil {
			continue
		}
		able := 0
		for _, r := range x.Reasons {
			if r.Kind > match.Small || r.Kind == match.Other || r.Kind == match.Drained || r.Kind == match.OwnerActive {
				able += r.Machines
			}
		}
		if able == 0 && x.Machines > 0 {
			return x.Summary
		}
	}
	return ""
}

// explain says why a job waits now; nil if it does not, or nothing is to be said.
func (p *Play) explain(job []*picture.Ask) *match.Explanation {
	for _, one := range job {
		if a := p.byKey[one.Key]; a != nil {
			a.Explain = true
		}
	}
	s := p.Plan()
	plan := p.matcher.Plan(s)
	for _, one := range job {
		a := p.byKey[one.Key]
		if a == nil {
			continue
		}
		a.Explain = false
		for _, u := range plan.Unplaced {
			if u.Request == &a.Request {
				return u.Explanation
			}
		}
	}
	return nil
}

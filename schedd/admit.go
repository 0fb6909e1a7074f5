package schedd

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// Where administrators have set quotas, the leader of the negotiators is asked before a submission is taken: it alone knows what the jobs of a user are
// at all schedds. It has to know what those here may hold: that is told when the quotas come, and whenever it has changed.
//
// Where no leader can be asked a submission is taken all the same, by the rules of queues that were heard last. The next leader is asked about it; if it
// refuses, the job is held with the refusal and its numbers for a reason.

// Times of admission.
const (
	admitPatience = 2 * time.Second        // for the leader's answer; without one a submission is taken
	demandsEvery  = 100 * time.Millisecond // how often what has changed is told, unless a submission is behind it
)

// admission is what one conversation knows of quotas.
type admission struct {
	policy *wire.Policy // nil: none was told
	open   map[uint64]chan error
	later  map[uint64]uint64 // by Admit: the job that is asked about, which was taken unasked
	asked  map[uint64]bool   // those jobs
	last   uint64            // Admit that was sent
	whole  bool              // all demands were told
	hurry  bool              // they are to be told at once
	told   time.Time         // when they were last
	routes routes
}

// seen is the last Admit of which all that came before is in the queue, or never will be.
func (a *admission) seen() uint64 {
	seen := a.last
	for id := range a.open {
		seen = min(seen, id-1)
	}
	for id := range a.later {
		seen = min(seen, id-1)
	}
	if a.routes.asked != 0 {
		seen = min(seen, a.routes.asked-1)
	}
	return seen
}

// errUnasked is the answer to a submission of which nobody said whether quotas allow it.
var errUnasked = errors.New("nobody said whether quotas allow it")

// admit asks whether jobs may be submitted, where somebody has to be asked. Where nobody can be, they are taken by the rules that were heard last, and
// marked: askLater asks about them. settle is to be called in the loop when it is decided what became of them.
//
// Of a job that a routing queue passes on the leader may say that the destination is full: then it goes to the next one, and the leader is asked again.
func (s *Schedd) admit(ctx context.Context, who queue.Submitter, key string, specs []queue.Spec) (settle func(), err error) {
	groups := s.users.groupNames(who.UID, who.GID)
	e := &entry{who: who, groups: func() []string { return groups }, full: map[string]bool{}}
	said := make([]*classad.Ad, len(specs))
	for i := range specs {
		said[i] = specs[i].Ad
	}
	for {
		for i := range specs {
			specs[i].Ad = said[i].Copy()
		}
		settle, err = s.admitBy(ctx, e, key, specs)
		var no refused
		if !errors.As(err, &no) || no.queue == "" || e.full[no.queue] || chosen(no.queue, e.policy, said) {
			return settle, err
		}
		e.full[no.queue] = true
	}
}

// chosen reports whether a job was submitted to that very queue.
func chosen(name string, p *wire.Policy, said []*classad.Ad) bool {
	return slices.ContainsFunc(said, func(ad *classad.Ad) bool {
		own, _ := ad.Str(roost.AttrQueue)
		return cmp.Or(own, p.GetDefaultQueue()) == name
	})
}

// admitBy is admit for one choice of queues.
func (s *Schedd) admitBy(ctx context.Context, e *entry, key string, specs []queue.Spec) (settle func(), err error) {
	settle = func() {}
	var answer chan error
	if aerr := s.ask(ctx, func(time.Time) {
		if s.queue.Known(e.who, key, s.limits()) {
			return
		}
		n := s.negotiator
		if n == nil || n.admission.policy == nil {
			unasked(specs)
			e.policy = s.policy()
			err = e.enqueue(specs)
			return
		}
		e.policy = n.admission.policy
		if err = named(e.policy, specs); err == nil {
			err = e.enqueue(specs)
		}
		if err == nil && e.policy.GetAdmission() {
			settle, answer, err = s.askAdmission(n, e.who, specs)
		}
	}); aerr != nil {
		return settle, aerr
	}
	if err != nil || answer == nil {
		return settle, err
	}
	if err = await(ctx, answer); err == errUnasked {
		s.log.Warn("nobody said whether quotas allow a submission: it is taken, and asked about later", "owner", e.who.User)
		unasked(specs)
		err = nil
	}
	if err != nil {
		// The leader has noted nothing of what it refused, and of the rest it hears with the next word.
		s.post(context.WithoutCancel(ctx), op(func(time.Time) { settle() }))
	}
	return settle, err
}

// askAdmission sends what a submission asks for.
func (s *Schedd) askAdmission(n *negotiation, who queue.Submitter, specs []queue.Spec) (settle func(), answer chan error, err error) {
	var payers []queue.Payer
	var asks []*wire.Demand
	for i := range specs {
		payer, d, err := queue.Ask(who, &specs[i])
		if err != nil {
			return func() {}, nil, err // the queue would say the same
		}
		payers, asks = append(payers, payer), append(asks, s.demandMessage(payer, d))
	}
	settle, answer = s.askFor(n, payers, asks)
	return settle, answer, nil
}

// askFor sends what is asked for by whom.
func (s *Schedd) askFor(n *negotiation, payers []queue.Payer, asks []*wire.Demand) (settle func(), answer chan error) {
	id := s.sendAdmit(n, &wire.Admit{Asks: asks})
	answer = make(chan error, 1)
	n.admission.open[id] = answer
	return func() {
		if _, open := n.admission.open[id]; open {
			delete(n.admission.open, id)
			s.queue.Recount(payers)
			n.admission.hurry = true
		}
	}, answer
}

// sendAdmit sends a question, and returns its number.
func (s *Schedd) sendAdmit(n *negotiation, m *wire.Admit) uint64 {
	n.admission.hurry = true // what has ended makes room
	s.publishDemands(s.at.now)
	n.admission.last++
	m.Id = n.admission.last
	n.out.put(&wire.FromSchedd{Of: &wire.FromSchedd_Admit{Admit: m}})
	return m.Id
}

// await waits for the answer to what was asked; that nobody gives one is errUnasked.
func await(ctx context.Context, answer <-chan error) error {
	patience := time.NewTimer(admitPatience)
	defer patience.Stop()
	select {
	case err := <-answer:
		return err
	case <-patience.C:
		return errUnasked
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unasked marks jobs of which nobody says whether quotas allow them.
func unasked(specs []queue.Spec) {
	for i := range specs {
		specs[i].Unasked = true
	}
}

// maxLater bounds how many jobs are asked about at once that were taken unasked.
const maxLater = 100

// askLater asks about the jobs that were taken while nobody could be asked.
func (s *Schedd) askLater(now time.Time) {
	n := s.negotiator
	if n == nil || n.admission.policy == nil {
		return
	}
	a := &n.admission
	for _, seq := range s.queue.Unasked() {
		switch {
		case !a.policy.GetAdmission():
			s.decide(s.queue.Admit(now, seq)...)
		case !a.asked[seq] && len(a.later) < maxLater:
			who, d, ok := s.queue.AskLater(seq)
			if !ok {
				continue
			}
			a.hurry = true // what has ended makes room
			s.publishDemands(now)
			a.last++
			a.later[a.last], a.asked[seq] = seq, true
			n.out.put(&wire.FromSchedd{Of: &wire.FromSchedd_Admit{Admit: &wire.Admit{Id: a.last, Asks: []*wire.Demand{s.demandMessage(who, d)}}}})
		}
	}
}

// toldLater takes in the answer about a job that was taken unasked.
func (s *Schedd) toldLater(seq uint64, m *wire.Admitted) {
	a := &s.negotiator.admission
	delete(a.later, m.GetId())
	delete(a.asked, seq)
	a.hurry = true
	if m.GetError() != "" {
		s.decide(s.queue.Overdraw(s.at.now, seq, m.GetError())...)
	} else {
		s.decide(s.queue.Admit(s.at.now, seq)...)
	}
}

// forget drops the question about a job that asks for something else now: it is asked about anew.
func (a *admission) forget(seq uint64) {
	delete(a.asked, seq)
	for id, other := range a.later {
		if other == seq {
			delete(a.later, id)
		}
	}
}

// admitted takes in an answer.
func (n *negotiation) admitted(m *wire.Admitted) {
	answer := n.admission.open[m.GetId()]
	if answer == nil {
		return
	}
	var err error
	if m.GetError() != "" {
		err = refused{m.GetError(), m.GetQueue()}
	}
	select {
	case answer <- err:
	default: // it was answered already
	}
}

// refused is the leader's refusal of a submission, in its words.
type refused struct {
	text  string
	queue string // that is too full, if that is why
}

func (r refused) Error() string { return r.text }
func (r refused) Unwrap() error { return roost.Exhausted }

func (s *Schedd) demandMessage(who queue.Payer, d queue.Demand) *wire.Demand {
	return &wire.Demand{
		Owner: who.Owner, Group: who.Group, Band: who.Band.String(), Queue: who.Queue, Held: wire.FromResources(d.Resources),
		Tasks: uint32(d.Tasks), Open: uint32(d.Open), UnixGroup: s.users.groupName(who.GID), OpenHeld: wire.FromResources(d.Whole),
	}
}

// publishDemands tells the leader what payers' jobs here may hold, where that has changed.
func (s *Schedd) publishDemands(now time.Time) {
	n := s.negotiator
	if n == nil || !n.admission.policy.GetAdmission() {
		return
	}
	a := &n.admission
	if !a.whole {
		s.queue.Recount(s.queue.Payers())
		a.whole, a.hurry = true, true
	}
	if !a.hurry && now.Sub(a.told) < demandsEvery {
		return
	}
	a.hurry, a.told = false, now
	seen := a.seen()
	for _, who := range s.queue.TakeDemanded() {
		m := s.demandMessage(who, s.queue.Demand(who))
		m.Seen = seen
		n.out.put(&wire.FromSchedd{Of: &wire.FromSchedd_Demand{Demand: m}})
	}
}

// ruled takes in what administrators have set.
func (n *negotiation) ruled(m *wire.Policy) {
	if !m.GetAdmission() {
		n.admission.whole = false
		n.admission.over() // nobody has to be asked any more
	}
	if m.GetDistributed() && !n.admission.policy.GetDistributed() {
		for id, t := range n.told { // the copy of the cell has to hear what they ask for
			t.anew, n.dirty[id] = true, true
		}
	}
	n.admission.policy = m
	n.whole = true // some queues may be counted now
}

// over lets those go on who wait for an answer that nobody will give: their jobs are taken unasked.
func (a *admission) over() {
	for _, answer := range a.open {
		select {
		case answer <- errUnasked:
		default:
		}
	}
}

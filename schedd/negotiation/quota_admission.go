package negotiation

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/admission"
	"github.com/roost-batch/roost/schedd/queue"
)

// Where administrators have set quotas, the leader of the negotiators is asked before a
// submission is taken: it alone knows what the jobs of a user are at all schedds. It has
// to know what those here may hold: that is told when the quotas come, and whenever it
// has changed.
//
// Where no leader can be asked a submission is taken all the same, by the rules of queues
// that were heard last. The next leader is asked about it; if it refuses, the job is held
// with the refusal and its numbers for a reason.

// Times of admission.
const (
	admissionTimeout = 2 * time.Second        // for the leader's answer; without one a submission is taken
	demandInterval   = 100 * time.Millisecond // how often what has changed is told, unless a submission is behind it
)

// quotaAdmission is what one conversation knows of quotas.
type quotaAdmission struct {
	policy        *wire.Policy // nil: none was told
	waiters       map[uint64]chan error
	deferred      map[uint64]uint64 // by Admit: the job that is asked about, which was taken unasked
	deferredJobs  map[uint64]bool   // those jobs
	lastAdmit     uint64            // Admit that was sent
	resendDemands bool              // all demands were told
	demandsUrgent bool              // they are to be told at once
	demandsSentAt time.Time         // when they were last
	routes        routingState
}

// ackedAdmit is the last Admit of which all that came before is in the queue, or never
// will be.
func (a *quotaAdmission) ackedAdmit() uint64 {
	seen := a.lastAdmit
	for id := range a.waiters {
		seen = min(seen, id-1)
	}
	for id := range a.deferred {
		seen = min(seen, id-1)
	}
	if a.routes.askedAdmit != 0 {
		seen = min(seen, a.routes.askedAdmit-1)
	}
	return seen
}

// ErrNotChecked is the answer to a submission of which nobody said whether quotas allow
// it.
var ErrNotChecked = errors.New("nobody said whether quotas allow it")

// RequestAdmission asks whether jobs may be submitted, where somebody has to be asked.
// Where nobody can be, they are taken by the rules that were heard last, and marked:
// CheckDeferred asks about them. settle is to be called in the loop when it is decided
// what became of them.
//
// Of a job that a routing queue passes on the leader may say that the destination is
// full: then it goes to the next one, and the leader is asked again.
func (l *LeaderConn) RequestAdmission(ctx context.Context, who queue.CallerIdentity, key string,
	specs []queue.SubmitSpec) (finish func(), err error) {
	groups := l.groups.GroupNames(who.UID, who.GID)
	e := &admission.QueueAdmission{Submitter: who, Groups: func() []string { return groups },
		FullQueues: map[string]bool{}}
	stated := make([]*classad.Ad, len(specs))
	for i := range specs {
		stated[i] = specs[i].Ad
	}
	for {
		for i := range specs {
			specs[i].Ad = stated[i].Copy()
		}
		finish, err = l.requestAdmissionFor(ctx, e, key, specs)
		var no admissionError
		if !errors.As(err, &no) || no.fullQueue == "" || e.FullQueues[no.fullQueue] ||
			isChosenQueue(no.fullQueue, e.Policy, stated) {
			return finish, err
		}
		e.FullQueues[no.fullQueue] = true
	}
}

// isChosenQueue reports whether a job was submitted to that very queue.
func isChosenQueue(name string, p *wire.Policy, stated []*classad.Ad) bool {
	return slices.ContainsFunc(stated, func(ad *classad.Ad) bool {
		own, _ := ad.Str(roost.AttrQueue)
		return cmp.Or(own, p.GetDefaultQueue()) == name
	})
}

// requestAdmissionFor is admit for one choice of queues.
func (l *LeaderConn) requestAdmissionFor(ctx context.Context, e *admission.QueueAdmission, key string,
	specs []queue.SubmitSpec) (finish func(), err error) {
	finish = func() {}
	var answer chan error
	if aerr := l.calls.CallLoop(ctx, func(now time.Time) {
		e.Now = now
		if l.queue.HasSubmission(e.Submitter, key, l.loop.SubmitLimits()) {
			return
		}
		n := l.stream
		if n == nil || n.admission.policy == nil {
			markUnchecked(specs)
			e.Policy = l.Policy()
			if err = e.AdmitJobs(specs); err == nil {
				err = admission.CheckRestricted(e.Policy, e.Submitter.User, cmp.Or(e.Submitter.Origin, l.host), specs)
			}
			return
		}
		e.Policy = n.admission.policy
		if err = admission.CheckReferences(e.Policy, specs); err == nil {
			err = e.AdmitJobs(specs)
		}
		if err == nil {
			err = admission.CheckCapabilities(e.Policy, e.Submitter.User, cmp.Or(e.Submitter.Origin, l.host), specs)
		}
		if err == nil && e.Policy.GetAdmission() {
			finish, answer, err = l.sendSubmission(n, e.Submitter, specs)
		}
	}); aerr != nil {
		return finish, aerr
	}
	if err != nil || answer == nil {
		return finish, err
	}
	if err = AwaitAdmission(ctx, answer); err == ErrNotChecked {
		l.log.Warn("nobody said whether quotas allow a submission: it is taken, and asked about later", "owner",
			e.Submitter.User)
		markUnchecked(specs)
		err = nil
	}
	if err != nil {
		// The leader has noted nothing of what it refused, and of the rest it hears with
		// the next word.
		l.calls.PostCall(context.WithoutCancel(ctx), func(time.Time) { finish() })
	}
	return finish, err
}

// sendSubmission sends what a submission asks for.
func (l *LeaderConn) sendSubmission(n *leaderSession, who queue.CallerIdentity,
	specs []queue.SubmitSpec) (finish func(), answer chan error, err error) {
	var payers []queue.QuotaKey
	var asks []*wire.Demand
	for i := range specs {
		payer, d, err := queue.SubmissionDemand(who, &specs[i])
		if err != nil {
			return func() {}, nil, err // the queue would say the same
		}
		payers, asks = append(payers, payer), append(asks, l.demandMessage(payer, d))
	}
	finish, answer = l.sendDemand(n, payers, asks)
	return finish, answer, nil
}

// sendDemand sends what is asked for by whom.
func (l *LeaderConn) sendDemand(n *leaderSession, payers []queue.QuotaKey,
	asks []*wire.Demand) (finish func(), answer chan error) {
	id := l.sendAdmit(n, &wire.Admit{Asks: asks})
	answer = make(chan error, 1)
	n.admission.waiters[id] = answer
	return func() {
		if _, open := n.admission.waiters[id]; open {
			delete(n.admission.waiters, id)
			l.queue.ReportDemand(payers)
			n.admission.demandsUrgent = true
		}
	}, answer
}

// sendAdmit sends a question, and returns its number.
func (l *LeaderConn) sendAdmit(n *leaderSession, m *wire.Admit) uint64 {
	n.admission.demandsUrgent = true // what has ended makes room
	l.SendDemands(l.loop.Now())
	n.admission.lastAdmit++
	m.Id = n.admission.lastAdmit
	n.out.Put(&wire.FromSchedd{Of: &wire.FromSchedd_Admit{Admit: m}})
	return m.Id
}

// AwaitAdmission waits for the answer to what was asked; that nobody gives one is
// ErrNotChecked.
func AwaitAdmission(ctx context.Context, answer <-chan error) error {
	patience := time.NewTimer(admissionTimeout)
	defer patience.Stop()
	select {
	case err := <-answer:
		return err
	case <-patience.C:
		return ErrNotChecked
	case <-ctx.Done():
		return ctx.Err()
	}
}

// markUnchecked marks jobs of which nobody says whether quotas allow them.
func markUnchecked(specs []queue.SubmitSpec) {
	for i := range specs {
		specs[i].DeferredAdmission = true
	}
}

// maxDeferred bounds how many jobs are asked about at once that were taken unasked.
const maxDeferred = 100

// CheckDeferred asks about the jobs that were taken while nobody could be asked.
func (l *LeaderConn) CheckDeferred(now time.Time) {
	n := l.stream
	if n == nil || n.admission.policy == nil {
		return
	}
	a := &n.admission
	for _, seq := range l.queue.DeferredJobs() {
		switch {
		case !l.deferredIsPermitted(now, seq):
		case !a.policy.GetAdmission():
			l.loop.CommitEvents(l.queue.AdmitDeferred(now, seq)...)
		case !a.deferredJobs[seq] && len(a.deferred) < maxDeferred:
			who, d, ok := l.queue.DeferredDemand(seq)
			if !ok {
				continue
			}
			a.demandsUrgent = true // what has ended makes room
			l.SendDemands(now)
			a.lastAdmit++
			a.deferred[a.lastAdmit], a.deferredJobs[seq] = seq, true
			n.out.Put(&wire.FromSchedd{Of: &wire.FromSchedd_Admit{Admit: &wire.Admit{Id: a.lastAdmit,
				Asks: []*wire.Demand{l.demandMessage(who, d)}}}})
		}
	}
}

// deferredIsPermitted holds a job that was taken unasked and that its owner may not have.
func (l *LeaderConn) deferredIsPermitted(now time.Time, seq uint64) bool {
	if len(l.stream.admission.policy.GetRestricted()) == 0 {
		return true
	}
	spec, ok := l.queue.SubmitSpec(seq)
	st, known := l.queue.Status(seq)
	if !ok || !known {
		return true
	}
	node, _ := spec.Ad.Str(roost.AttrSubmitHost)
	err := admission.CheckRestricted(l.stream.admission.policy, st.Owner, cmp.Or(node, l.host),
		[]queue.SubmitSpec{spec})
	if err == nil {
		return true
	}
	events := l.queue.HoldOverQuota(now, seq, err.Error())
	l.loop.CommitEvents(events...)
	return len(events) == 0
}

// onDeferredCheck takes in the answer about a job that was taken unasked.
func (l *LeaderConn) onDeferredCheck(seq uint64, m *wire.Admitted) {
	a := &l.stream.admission
	delete(a.deferred, m.GetId())
	delete(a.deferredJobs, seq)
	a.demandsUrgent = true
	if m.GetError() != "" {
		l.loop.CommitEvents(l.queue.HoldOverQuota(l.loop.Now(), seq, m.GetError())...)
	} else {
		l.loop.CommitEvents(l.queue.AdmitDeferred(l.loop.Now(), seq)...)
	}
}

// cancelQuestion drops the question about a job that asks for something else now: it is
// asked about anew.
func (a *quotaAdmission) cancelQuestion(seq uint64) {
	delete(a.deferredJobs, seq)
	for id, other := range a.deferred {
		if other == seq {
			delete(a.deferred, id)
		}
	}
}

// onAdmitReply takes in an answer.
func (n *leaderSession) onAdmitReply(m *wire.Admitted) {
	answer := n.admission.waiters[m.GetId()]
	if answer == nil {
		return
	}
	var err error
	if m.GetError() != "" {
		err = admissionError{m.GetError(), m.GetQueue()}
	}
	select {
	case answer <- err:
	default: // it was answered already
	}
}

// admissionError is the leader's refusal of a submission, in its words.
type admissionError struct {
	reason    string
	fullQueue string // that is too full, if that is why
}

func (r admissionError) Error() string { return r.reason }
func (r admissionError) Unwrap() error { return roost.Exhausted }

func (l *LeaderConn) demandMessage(who queue.QuotaKey, d queue.QuotaDemand) *wire.Demand {
	return &wire.Demand{
		Owner: who.Owner, Group: who.Group, Band: who.Band.String(), Queue: who.Queue,
		Held:  wire.FromResources(d.Resources),
		Tasks: uint32(d.Tasks), Open: uint32(d.Open), UnixGroup: l.groups.GroupName(who.GID),
		OpenHeld: wire.FromResources(d.Total),
	}
}

// SendDemands tells the leader what payers' jobs here may hold, where that has changed.
func (l *LeaderConn) SendDemands(now time.Time) {
	n := l.stream
	if n == nil || !n.admission.policy.GetAdmission() {
		return
	}
	a := &n.admission
	if !a.resendDemands {
		l.queue.ReportDemand(l.queue.QuotaKeys())
		a.resendDemands, a.demandsUrgent = true, true
	}
	if !a.demandsUrgent && now.Sub(a.demandsSentAt) < demandInterval {
		return
	}
	a.demandsUrgent, a.demandsSentAt = false, now
	seen := a.ackedAdmit()
	for _, who := range l.queue.TakeChangedDemands() {
		m := l.demandMessage(who, l.queue.DemandOf(who))
		m.Seen = seen
		n.out.Put(&wire.FromSchedd{Of: &wire.FromSchedd_Demand{Demand: m}})
	}
}

// setPolicy takes in what administrators have set.
func (n *leaderSession) setPolicy(m *wire.Policy) {
	if !m.GetAdmission() {
		n.admission.resendDemands = false
		n.admission.releaseWaiters() // nobody has to be asked any more
	}
	if m.GetDistributed() && !n.admission.policy.GetDistributed() {
		for id, t := range n.lastUpdates { // the copy of the cell has to hear what they ask for
			t.resendAll, n.dirty[id] = true, true
		}
	}
	n.admission.policy = m
	n.resendAll = true // some queues may be counted now
}

// releaseWaiters lets those go on who wait for an answer that nobody will give: their
// jobs are taken unasked.
func (a *quotaAdmission) releaseWaiters() {
	for _, answer := range a.waiters {
		select {
		case answer <- ErrNotChecked:
		default:
		}
	}
}

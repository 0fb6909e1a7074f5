package negotiator

import (
	"context"
	"log/slog"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/replica"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/share"
)

// Bounds of the loop, and its times.
const (
	inboxSize   = 4096
	maxUnderway = 8                      // entries that are proposed and not committed; then the next cycle waits, and has more to decide at once
	maxOutcomes = 1024                   // more than the replica lets be under way
	riseAgain   = 100 * time.Millisecond // after an entry was not committed though this negotiator still seems to lead
)

// journal is the replicated log as the loop sees it.
type journal interface {
	// Propose asks for an entry to be committed and does not wait. done is called exactly once, in the order of the proposals, with what the record
	// made of the entry, or with an error where this negotiator does not lead: then it may be committed yet, or never.
	Propose(entry []byte, done func(result any, err error))
	// Leadership tells who leads; only the latest news is kept.
	Leadership() <-chan replica.Leadership
}

// loop is the goroutine that owns the cell. Events are functions of it.
type loop struct {
	node     string // for people
	address  string // by which the other negotiators know this one
	log      *slog.Logger
	period   time.Duration // the longest time between two cycles
	record   *record
	standing *standing

	old   []share.Account // from before there was a ledger; they go into the first entry by which this negotiator leads
	taken func()          // is called when they are in it

	inbox    chan func(now time.Time)
	outcomes chan outcome  // has room for all that is under way
	done     chan struct{} // closed when the loop has ended

	state     state
	news      replica.Leadership // the latest
	rises     uint64             // counts the tries to lead, so that what came of an earlier one is not taken for that of this one
	again     time.Time          // rising is tried again; zero for never
	inventory *inventory
	cell      *cell // leading
	underway  int   // proposals
}

// outcome is what has come of a proposal.
type outcome struct {
	rise   uint64
	draft  draft
	result ledger.Result
	err    error
}

func newLoop(node, address string, r *record, s *standing, period time.Duration, log *slog.Logger) *loop {
	return &loop{
		node: node, address: address, log: log, period: period, record: r, standing: s, inventory: newInventory(),
		inbox: make(chan func(time.Time), inboxSize), outcomes: make(chan outcome, maxOutcomes), done: make(chan struct{}),
	}
}

// run takes events in until ctx ends. Where this negotiator leads it makes a cycle whenever they have changed something: at once, but after all that
// already waits.
func (l *loop) run(ctx context.Context, j journal) error {
	defer close(l.done)
	periodic := time.NewTicker(l.period)
	defer periodic.Stop()
	for {
		due, stop := l.alarm()
		select {
		case <-ctx.Done():
			stop()
			return nil
		case event := <-l.inbox:
			now := time.Now()
			event(now)
			for range len(l.inbox) {
				(<-l.inbox)(now)
			}
		case news := <-j.Leadership():
			l.turned(time.Now(), j, news)
		case o := <-l.outcomes:
			l.settled(time.Now(), o)
			for range len(l.outcomes) {
				l.settled(time.Now(), <-l.outcomes)
			}
		case <-due:
			l.stir(j, time.Now())
		case <-periodic.C:
			if l.cell != nil {
				l.cell.charge(time.Now())
				l.cell.changed = true
			}
		}
		stop()
		if l.ready() {
			began := time.Now()
			l.plan(began)
			if took := time.Since(began); took > time.Second {
				l.log.Warn("slow cycle", "took", took, "machines", len(l.inventory.machines))
			}
			l.commit(time.Now(), j)
		}
	}
}

// alarm fires when time asks for something.
func (l *loop) alarm() (due <-chan time.Time, stop func()) {
	at, ok := l.wake()
	if !ok {
		return nil, func() {}
	}
	timer := time.NewTimer(time.Until(at))
	return timer.C, func() { timer.Stop() }
}

// wake is when time asks for something; ok is false when it does not.
func (l *loop) wake() (at time.Time, ok bool) {
	at = l.again
	if l.cell != nil {
		if wake, ok := l.cell.wake(); ok && (at.IsZero() || wake.Before(at)) {
			at = wake
		}
	}
	return at, !at.IsZero()
}

// stir does what time asks for.
func (l *loop) stir(j journal, now time.Time) {
	if l.cell != nil {
		l.cell.stir(now)
	}
	if !l.again.IsZero() && !now.Before(l.again) {
		if l.again = (time.Time{}); l.news.Leads {
			l.rise(now, j)
		}
	}
}

// ready reports whether there is a cell that may decide something now.
func (l *loop) ready() bool { return l.cell != nil && l.underway < maxUnderway }

// plan makes a cycle if something has changed.
func (l *loop) plan(now time.Time) {
	if l.cell.changed {
		l.cell.cycle(now)
	}
}

// commit has committed what was decided.
func (l *loop) commit(now time.Time, j journal) {
	if d, ok := l.cell.take(now); ok {
		l.propose(now, j, l.cell.entry(d), d)
	}
}

// propose stamps an entry with this leader's time and has it committed. What follows from that where the clock of the leader before was another the
// ledger says: it holds still where it is ahead by a little, and goes back where that clock was wrong.
func (l *loop) propose(now time.Time, j journal, e *ledger.Entry, d draft) {
	d.at, e.At = now, now.UnixNano()
	l.underway++
	rise := l.rises
	j.Propose(e.Encode(nil), func(result any, err error) {
		o := outcome{rise: rise, draft: d, err: err}
		if err == nil {
			o.result = result.(ledger.Result)
			o.err = o.result.Err
		}
		l.outcomes <- o
	})
}

// settled takes in what has come of a proposal.
func (l *loop) settled(now time.Time, o outcome) {
	l.underway--
	o.answer()
	switch {
	case o.rise != l.rises || l.state == following: // of a time before
	case o.err != nil:
		l.log.Warn("an entry was not committed", "err", o.err)
		l.fall()
		l.again = now.Add(riseAgain)
	case l.state == rising:
		l.risen(now, o.result.Epoch)
	default:
		for i, command := range o.draft.commands {
			if err := o.result.Commands[len(o.draft.petitions)+i]; err != nil {
				l.log.Warn("a command of the negotiator's own was refused", "kind", command.Kind, "err", err)
			}
		}
		l.cell.committed(now, o.draft)
		l.cell.changed = l.cell.changed || len(o.draft.petitions) > 0
	}
}

// machinesChanged takes in what the collectors said, also while this negotiator does not lead.
func (l *loop) machinesChanged(now time.Time, all []machineNews, synced bool) {
	if l.cell == nil {
		l.inventory.apply(all, synced)
		return
	}
	l.cell.machinesChanged(now, all, synced)
}

// joined begins a conversation; where another negotiator leads it is refused.
func (l *loop) joined(now time.Time, hello *wire.ScheddHello, mail *mailbox) error {
	if l.cell == nil {
		return l.elsewhere()
	}
	return l.cell.joined(now, hello, mail)
}

// heard takes in one message of a conversation, unless the cell that it was with is gone.
func (l *loop) heard(now time.Time, name string, mail *mailbox, m *wire.FromSchedd) error {
	if l.cell == nil {
		return nil
	}
	return l.cell.heard(now, name, mail, m)
}

func (l *loop) left(now time.Time, name string, mail *mailbox) {
	if l.cell != nil {
		l.cell.left(now, name, mail)
	}
}

// do runs event in the loop's goroutine and waits for it.
func (l *loop) do(ctx context.Context, event func(now time.Time)) error {
	ran := make(chan struct{})
	select {
	case l.inbox <- func(now time.Time) { event(now); close(ran) }:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.done:
		return errStopping
	}
	select {
	case <-ran:
		return nil
	case <-l.done:
		return errStopping
	}
}

// post hands an event to the loop and does not wait until it was run.
func (l *loop) post(ctx context.Context, event func(now time.Time)) {
	select {
	case l.inbox <- event:
	case <-ctx.Done():
	case <-l.done:
	}
}

// errStopping is what conversations get that are under way when the negotiator ends.
var errStopping error = stopping{}

type stopping struct{}

func (stopping) Error() string { return "negotiator: stopping" }
func (stopping) Unwrap() error { return roost.Unavailable }

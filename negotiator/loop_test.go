package negotiator

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/replica"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// fakeLog commits proposals at once, when the test permits it, or never.
type fakeLog struct {
	ledgerStore       *ledgerStore
	leadershipChanges chan replica.LeadershipChange

	mu      sync.Mutex
	stalled bool
	refused error
	waiting []func()
	times   []int64 // times of the entries
}

func (f *fakeLog) Leadership() <-chan replica.LeadershipChange { return f.leadershipChanges }

func (f *fakeLog) Propose(text []byte, done func(any, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, err := ledger.Decode(text)
	if err != nil {
		panic(err)
	}
	f.times = append(f.times, e.At)
	commit := func() { done(f.ledgerStore.Apply(0, text), nil) }
	switch refused := f.refused; {
	case refused != nil:
		commit = func() { done(nil, refused) }
		fallthrough
	case !f.stalled:
		go commit()
	default:
		f.waiting = append(f.waiting, commit)
	}
}

// setOutcome changes the outcome of proposals; waiting ones are committed unless it stays
// stalled.
func (f *fakeLog) setOutcome(stalled bool, refused error) {
	f.mu.Lock()
	f.stalled, f.refused = stalled, refused
	var all []func()
	if !stalled {
		all, f.waiting = f.waiting, nil
	}
	f.mu.Unlock()
	for _, commit := range all {
		commit()
	}
}

// loopTest is a loop in a synctest bubble, with a log that the test controls.
type loopTest struct {
	*testing.T
	*decisionLoop
	log *fakeLog
}

// runLoopTest runs a test with a loop that knows one machine of that many cores. Its time
// is the test's.
func runLoopTest(t *testing.T, cpus int, test func(b *loopTest)) {
	synctest.Test(t, func(t *testing.T) {
		leadership := newLeadership()
		r := newLedgerStore(func(epoch uint64) {
			leadership.setState(func(p *leadershipState) { p.epoch = max(p.epoch, epoch) })
		})
		l := newLoop("head", "unix:/head", r, leadership, time.Hour, slog.New(slog.DiscardHandler))
		f := &fakeLog{ledgerStore: r, leadershipChanges: make(chan replica.LeadershipChange, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		go l.run(ctx, f)
		change := adclient.AdChange{
			Name: "n1", Sequence: 1, Started: 1, Ad: fmt.Sprintf("[Cpus = %d; TotalCpus = %d]", cpus, cpus),
			Private: map[string]string{grantKey: hex.EncodeToString(testKey)},
		}
		l.postEvent(ctx, func(now time.Time) {
			l.onMachinesChanged(now, []machineUpdate{parseMachineUpdate(now, change, l.log)}, true)
		})
		test(&loopTest{t, l, f})
		cancel()
		<-l.done
	})
}

// changeLeadership reports to the loop who leads, and waits until it has reacted.
func (b *loopTest) changeLeadership(update replica.LeadershipChange) {
	b.log.leadershipChanges <- update
	synctest.Wait()
}

// joinSchedd begins a session.
func (b *loopTest) joinSchedd(name string) (mail *sendQueue, err error) {
	mail = newSendQueue()
	if derr := b.runInLoop(b.Context(), func(now time.Time) {
		err = b.onJoined(now, &wire.ScheddHello{Name: name}, mail)
	}); derr != nil {
		b.Fatal(derr)
	}
	return mail, err
}

func (b *loopTest) sendMessage(name string, mail *sendQueue, m *wire.FromSchedd) {
	if err := b.runInLoop(b.Context(), func(now time.Time) {
		if err := b.onMessage(now, name, mail, m); err != nil {
			b.Error(err)
		}
	}); err != nil {
		b.Fatal(err)
	}
	synctest.Wait()
}

// takeGrants takes the messages from a send queue, and counts the grants.
func takeGrants(mail *sendQueue) (n int, ended error) {
	messages, _, ended := mail.takeAll()
	for _, m := range messages {
		if m.GetGrant() != nil {
			n++
		}
	}
	return n, ended
}

// TestNothingBeforeItIsCommitted checks that grants are sent when they are committed. A
// deposed leader never sends them, even if they are committed later.
func TestNothingBeforeItIsCommitted(t *testing.T) {
	runLoopTest(t, 4, func(b *loopTest) {
		if _, err := b.joinSchedd("s"); !errors.Is(err, roost.Unavailable) {
			b.Errorf("one that does not lead takes a schedd in: %v", err)
		}
		b.changeLeadership(replica.LeadershipChange{IsLeader: true, Term: 1})
		mail, err := b.joinSchedd("s")
		if err != nil {
			b.Fatal(err)
		}
		b.log.setOutcome(true, nil)
		b.sendMessage("s", mail, requestMessage(1, 2, 0))
		if n, _ := takeGrants(mail); n != 0 {
			b.Errorf("%d grants before they are committed", n)
		}
		b.log.setOutcome(false, nil)
		synctest.Wait()
		if n, _ := takeGrants(mail); n != 2 {
			b.Errorf("%d grants after they were committed", n)
		}
		b.log.setOutcome(true, nil)
		b.sendMessage("s", mail, requestMessage(2, 2, 2))
		b.changeLeadership(replica.LeadershipChange{Leader: "unix:/other", Term: 2})
		b.log.setOutcome(false, nil)
		synctest.Wait()
		if n, ended := takeGrants(mail); n != 0 || !errors.Is(ended, roost.Unavailable) {
			b.Errorf("%d grants of one that leads no more, and the conversation ends with %v", n, ended)
		}
		if p, _ := b.leadership.currentState(); p.isLeader || p.leader != "unix:/other" {
			b.Errorf("it says of who leads: %+v", p)
		}
	})
}

// TestProposesLeadershipAgain checks a negotiator whose entries are not committed. It
// gives up leadership, and proposes it again with a higher epoch while its replica still
// leads.
func TestProposesLeadershipAgain(t *testing.T) {
	runLoopTest(t, 4, func(b *loopTest) {
		b.changeLeadership(replica.LeadershipChange{IsLeader: true, Term: 1})
		first, _ := b.leadership.currentState()
		mail, err := b.joinSchedd("s")
		if err != nil || !first.isLeader {
			b.Fatalf("%+v, %v", first, err)
		}
		b.log.setOutcome(false, roost.Unavailable)
		b.sendMessage("s", mail, requestMessage(1, 1, 0))
		if n, ended := takeGrants(mail); n != 0 || ended == nil {
			b.Errorf("%d grants, and the conversation ends with %v", n, ended)
		}
		time.Sleep(10 * leadershipRetry)
		if p, _ := b.leadership.currentState(); p.isLeader {
			b.Errorf("it leads without a log: %+v", p)
		}
		b.log.setOutcome(false, nil)
		time.Sleep(2 * leadershipRetry)
		if p, _ := b.leadership.currentState(); !p.isLeader || p.epoch <= first.epoch {
			b.Errorf("after %+v it says %+v", first, p)
		}
	})
}

// TestUsageIsCharged checks that usage is in the log a second after a change, without a
// grant. Time does not run backwards if the clock of an earlier leader was a little
// ahead. It does if that clock was wrong, because otherwise nothing would be charged
// until that time.
func TestUsageIsCharged(t *testing.T) {
	for ahead, accepted := range map[time.Duration]bool{30 * time.Second: true, 365 * 24 * time.Hour: false} {
		runLoopTest(t, 4, func(b *loopTest) {
			wrong := ledger.LogEntry{At: time.Now().Add(ahead).UnixNano(), Lead: "other"}
			b.ledgerStore.Apply(0, wrong.Encode(nil))
			b.changeLeadership(replica.LeadershipChange{IsLeader: true, Term: 2})
			mail, err := b.joinSchedd("s")
			if err != nil {
				b.Fatal(err)
			}
			b.sendMessage("s", mail, &wire.FromSchedd{Of: &wire.FromSchedd_Usage{Usage: &wire.Usage{Owner: "ann",
				Held: wire.FromResources(roost.Resources{CPU: 3000})}}})
			time.Sleep(usageCommitInterval)
			synctest.Wait()
			b.ledgerStore.view(func(l *ledger.Ledger) {
				if got := l.Accountant().Account(l.Now(), fairshare.Submitter{Owner: "ann"}).Use; got != 3 {
					b.Errorf("ann uses %v cores", got)
				}
				want := time.Now()
				if accepted {
					want = time.Unix(0, wrong.At)
				}
				if !l.Now().Equal(want) {
					b.Errorf("after a clock that was ahead by %v the ledger's says %v, want %v", ahead, l.Now(), want)
				}
			})
		})
	}
}

// recordingStream is a stream that records what is sent.
type recordingStream struct {
	scheddStream
	sent []*wire.ToSchedd
}

func (d *recordingStream) Send(m *wire.ToSchedd) error {
	d.sent = append(d.sent, m)
	return nil
}

// TestLateGrants checks that old decisions are sent only if this negotiator still leads.
func TestLateGrants(t *testing.T) {
	gone := fmt.Errorf("%w: another leads", roost.Unavailable)
	for _, tt := range []struct {
		age  time.Duration
		lost error
		sent int
	}{{0, gone, 1}, {2 * maxUnverifiedAge, nil, 1}, {2 * maxUnverifiedAge, gone, 0}} {
		s := &grpcService{log: slog.New(slog.DiscardHandler), verifyLeader: func(context.Context) error {
			return tt.lost
		}}
		mail, to := newSendQueue(), &recordingStream{}
		mail.putGrant(&wire.ToSchedd{Of: &wire.ToSchedd_Grant{Grant: &wire.Grant{}}}, time.Now().Add(-tt.age))
		err := s.sendWaiting(t.Context(), to, mail)
		if len(to.sent) != tt.sent || (err == nil) != (tt.sent == 1) || err != nil && !errors.Is(err, roost.Stale) {
			t.Errorf("decided %v ago, leads: %v: %d sent, and %v", tt.age, tt.lost == nil, len(to.sent), err)
		}
	}
}

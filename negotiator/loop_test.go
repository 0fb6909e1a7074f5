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
	"github.com/roost-batch/roost/internal/advertise"
	"github.com/roost-batch/roost/internal/replica"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/share"
)

// fakeLog commits what is proposed at once, or when the test lets it, or never.
type fakeLog struct {
	record *record
	news   chan replica.Leadership

	mu      sync.Mutex
	stalled bool
	refused error
	waiting []func()
	times   []int64 // of the entries
}

func (f *fakeLog) Leadership() <-chan replica.Leadership { return f.news }

func (f *fakeLog) Propose(text []byte, done func(any, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, err := ledger.Decode(text)
	if err != nil {
		panic(err)
	}
	f.times = append(f.times, e.At)
	commit := func() { done(f.record.Apply(0, text), nil) }
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

// set changes what becomes of proposals; those that wait are committed unless it stays stalled.
func (f *fakeLog) set(stalled bool, refused error) {
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

// bubble is a loop in a bubble, with a log that the test plays.
type bubble struct {
	*testing.T
	*loop
	log *fakeLog
}

// inBubble runs a test with a loop that knows one machine of that many cores, and whose time is the test's.
func inBubble(t *testing.T, cpus int, test func(b *bubble)) {
	synctest.Test(t, func(t *testing.T) {
		standing := newStanding()
		r := newRecord(func(epoch uint64) { standing.move(func(p *position) { p.epoch = max(p.epoch, epoch) }) })
		l := newLoop("head", "unix:/head", r, standing, time.Hour, slog.New(slog.DiscardHandler))
		f := &fakeLog{record: r, news: make(chan replica.Leadership, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		go l.run(ctx, f)
		change := advertise.Change{
			Name: "n1", Sequence: 1, Started: 1, Ad: fmt.Sprintf("[Cpus = %d; TotalCpus = %d]", cpus, cpus), Private: map[string]string{grantKey: hex.EncodeToString(testKey)},
		}
		l.post(ctx, func(now time.Time) { l.machinesChanged(now, []machineNews{readMachine(now, change, l.log)}, true) })
		test(&bubble{t, l, f})
		cancel()
		<-l.done
	})
}

// turn tells the loop who leads, and waits until it has done what follows.
func (b *bubble) turn(news replica.Leadership) {
	b.log.news <- news
	synctest.Wait()
}

// join begins a conversation.
func (b *bubble) join(name string) (mail *mailbox, err error) {
	mail = newMailbox()
	if derr := b.do(b.Context(), func(now time.Time) { err = b.joined(now, &wire.ScheddHello{Name: name}, mail) }); derr != nil {
		b.Fatal(derr)
	}
	return mail, err
}

func (b *bubble) say(name string, mail *mailbox, m *wire.FromSchedd) {
	if err := b.do(b.Context(), func(now time.Time) {
		if err := b.heard(now, name, mail, m); err != nil {
			b.Error(err)
		}
	}); err != nil {
		b.Fatal(err)
	}
	synctest.Wait()
}

// grants takes what is in a mailbox, and counts the grants.
func grants(mail *mailbox) (n int, ended error) {
	messages, _, ended := mail.take()
	for _, m := range messages {
		if m.GetGrant() != nil {
			n++
		}
	}
	return n, ended
}

// TestNothingBeforeItIsCommitted holds that grants are sent when the log has them, and never by one that leads no more, though they be committed later.
func TestNothingBeforeItIsCommitted(t *testing.T) {
	inBubble(t, 4, func(b *bubble) {
		if _, err := b.join("s"); !errors.Is(err, roost.Unavailable) {
			b.Errorf("one that does not lead takes a schedd in: %v", err)
		}
		b.turn(replica.Leadership{Leads: true, Term: 1})
		mail, err := b.join("s")
		if err != nil {
			b.Fatal(err)
		}
		b.log.set(true, nil)
		b.say("s", mail, wish(1, 2, 0))
		if n, _ := grants(mail); n != 0 {
			b.Errorf("%d grants before they are committed", n)
		}
		b.log.set(false, nil)
		synctest.Wait()
		if n, _ := grants(mail); n != 2 {
			b.Errorf("%d grants after they were committed", n)
		}
		b.log.set(true, nil)
		b.say("s", mail, wish(2, 2, 2))
		b.turn(replica.Leadership{Leader: "unix:/other", Term: 2})
		b.log.set(false, nil)
		synctest.Wait()
		if n, ended := grants(mail); n != 0 || !errors.Is(ended, roost.Unavailable) {
			b.Errorf("%d grants of one that leads no more, and the conversation ends with %v", n, ended)
		}
		if p, _ := b.standing.look(); p.leads || p.leader != "unix:/other" {
			b.Errorf("it says of who leads: %+v", p)
		}
	})
}

// TestRisesAgain holds that one whose entries are not committed gives up the lead, and takes it anew, with a higher epoch, while it is told that it has it.
func TestRisesAgain(t *testing.T) {
	inBubble(t, 4, func(b *bubble) {
		b.turn(replica.Leadership{Leads: true, Term: 1})
		first, _ := b.standing.look()
		mail, err := b.join("s")
		if err != nil || !first.leads {
			b.Fatalf("%+v, %v", first, err)
		}
		b.log.set(false, roost.Unavailable)
		b.say("s", mail, wish(1, 1, 0))
		if n, ended := grants(mail); n != 0 || ended == nil {
			b.Errorf("%d grants, and the conversation ends with %v", n, ended)
		}
		time.Sleep(10 * riseAgain)
		if p, _ := b.standing.look(); p.leads {
			b.Errorf("it leads without a log: %+v", p)
		}
		b.log.set(false, nil)
		time.Sleep(2 * riseAgain)
		if p, _ := b.standing.look(); !p.leads || p.epoch <= first.epoch {
			b.Errorf("after %+v it says %+v", first, p)
		}
	})
}

// TestUseIsCharged holds that what a submitter uses is in the log a second later, without a grant to go with; that time does not run backwards where the
// clock of the leader before was a little ahead; and that it does where that clock was wrong, as nothing would be charged until the wrong time has come.
func TestUseIsCharged(t *testing.T) {
	for ahead, stands := range map[time.Duration]bool{30 * time.Second: true, 365 * 24 * time.Hour: false} {
		inBubble(t, 4, func(b *bubble) {
			wrong := ledger.Entry{At: time.Now().Add(ahead).UnixNano(), Lead: "other"}
			b.record.Apply(0, wrong.Encode(nil))
			b.turn(replica.Leadership{Leads: true, Term: 2})
			mail, err := b.join("s")
			if err != nil {
				b.Fatal(err)
			}
			b.say("s", mail, &wire.FromSchedd{Of: &wire.FromSchedd_Usage{Usage: &wire.Usage{Owner: "ann", Held: wire.FromResources(roost.Resources{CPU: 3000})}}})
			time.Sleep(holdsEvery)
			synctest.Wait()
			b.record.look(func(l *ledger.Ledger) {
				if got := l.Book().Account(l.Now(), share.Submitter{Owner: "ann"}).Use; got != 3 {
					b.Errorf("ann uses %v cores", got)
				}
				want := time.Now()
				if stands {
					want = time.Unix(0, wrong.At)
				}
				if !l.Now().Equal(want) {
					b.Errorf("after a clock that was ahead by %v the ledger's says %v, want %v", ahead, l.Now(), want)
				}
			})
		})
	}
}

// deaf is a conversation that takes note of what is sent.
type deaf struct {
	conversation
	sent []*wire.ToSchedd
}

func (d *deaf) Send(m *wire.ToSchedd) error {
	d.sent = append(d.sent, m)
	return nil
}

// TestLateGrants holds that what was decided long ago, since when this negotiator may have been stopped, is sent only if it still leads.
func TestLateGrants(t *testing.T) {
	gone := fmt.Errorf("%w: another leads", roost.Unavailable)
	for _, tt := range []struct {
		age  time.Duration
		lost error
		sent int
	}{{0, gone, 1}, {2 * lateAfter, nil, 1}, {2 * lateAfter, gone, 0}} {
		s := &service{log: slog.New(slog.DiscardHandler), verify: func(context.Context) error { return tt.lost }}
		mail, to := newMailbox(), &deaf{}
		mail.grant(&wire.ToSchedd{Of: &wire.ToSchedd_Grant{Grant: &wire.Grant{}}}, time.Now().Add(-tt.age))
		err := s.deliver(t.Context(), to, mail)
		if len(to.sent) != tt.sent || (err == nil) != (tt.sent == 1) || err != nil && !errors.Is(err, roost.Stale) {
			t.Errorf("decided %v ago, leads: %v: %d sent, and %v", tt.age, tt.lost == nil, len(to.sent), err)
		}
	}
}

package ledger

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/plant"
	"github.com/roost-batch/roost/negotiator/share"
)

// Bounds of the ledger.
const (
	maxPairs   = 100_000
	maxObjects = 100_000 // of one kind
)

// putBack is how far an entry's time may lie before that of the one before and still be taken for the unevenness of two leaders' clocks. Beyond it
// the clock was wrong and has been put right: the ledger's goes back with it, or nothing would be charged until the wrong time has come.
const putBack = time.Minute

// latest bounds the times of entries: 1 January 2200. Beyond 2262 they do not fit 64 bits.
const latest = 7258118400 * int64(time.Second)

// Ledger is the replicated state. The zero value is not ready for use: see [New].
type Ledger struct {
	now      int64
	epoch    uint64
	leader   string
	last     uint64 // the highest number that a grant has had
	book     *share.Book
	flights  []Flight   // oldest first
	licensed []Flight   // those with licences, likewise
	evicted  []Eviction // in the last hour, oldest first
	pairs    map[pairKey]Pair
	pairsDue int64 // when the first of them is over
	objects  map[Kind]map[string]*object
	policy   uint64 // counts changes of objects
}

// New returns a ledger in which nothing has happened.
func New() *Ledger {
	return &Ledger{book: share.NewBook(0), pairs: map[pairKey]Pair{}, objects: map[Kind]map[string]*object{}}
}

// Apply takes in the next entry of the log.
func (l *Ledger) Apply(e *Entry) Result {
	switch {
	case e.At <= 0 || e.At > latest:
		return Result{l.epoch, fmt.Errorf("ledger: %w: an entry has the time %d, which no clock shows", roost.Invalid, e.At), nil}
	case e.Lead == "" && e.Epoch != l.epoch:
		return Result{l.epoch, fmt.Errorf("ledger: %w: an entry of epoch %d, and it is %d", roost.Stale, e.Epoch, l.epoch), nil}
	}
	if e.Lead != "" {
		l.handOver(e.At)
		if plant.Is(plant.ChargedTwice) {
			l.book.Rewind(l.time().Add(-5 * time.Second))
		}
	}
	l.advance(e.At)
	if e.Lead != "" {
		l.leader, l.epoch = e.Lead, max(l.epoch+1, uint64(l.now/int64(time.Second)))
	}
	for _, a := range e.Accounts {
		l.takeOver(a)
	}
	for _, h := range e.Holds {
		l.book.Hold(l.time(), h.Submitter, h.Cores)
	}
	if plant.Is(plant.MapOrder) {
		shuffle(e.Grants)
	}
	for _, g := range e.Grants {
		l.evict(g.Evicted)
		g.Evicted = nil
		l.fly(g)
	}
	l.land(e.Ended)
	for _, p := range e.Pairs {
		l.keepApart(p)
	}
	var refused []error
	for i := range e.Commands {
		refused = append(refused, l.command(&e.Commands[i]))
	}
	return Result{l.epoch, nil, refused}
}

// shuffle is how a map orders grants: a bug that is planted.
func shuffle(grants []Grant) {
	byID := map[uint64]Grant{}
	for _, g := range grants {
		byID[g.ID] = g
	}
	i := 0
	for _, g := range byID {
		grants[i] = g
		i++
	}
}

// takeOver opens an account as it was kept elsewhere. One that makes no sense is passed over. Who has one already, as another has led before the one
// that kept this, keeps the larger of both: what it has used since then is little, and an entry that is proposed twice is charged once.
func (l *Ledger) takeOver(a share.Account) {
	a.At, a.Factor = min(max(a.At, 0), l.now), share.DefaultFactor // factors are set by objects
	if !l.book.Has(a.Submitter) {
		_ = l.book.Put(a)
		return
	}
	kept := share.NewBook(l.book.HalfLife())
	if kept.Put(a) != nil {
		return
	}
	was, now := kept.Account(l.time(), a.Submitter), l.book.Account(l.time(), a.Submitter)
	now.Real, now.Used = max(now.Real, was.Real), max(now.Used, was.Used)
	_ = l.book.Put(now)
}

// unseen is more leaders than a cell has had that a ledger may know nothing of, and more seconds than a clock is wrong by when it is noticed.
const unseen = 100_000

// Recover prepares a ledger whose cell is lost for one that begins with it. The last to lead, and what was granted then, may stand only in what is lost:
// so the epoch goes beyond any that machines may have seen since. Naively the next leader's would do, as it is the time in seconds; but not where a clock is wrong.
func (l *Ledger) Recover() { l.epoch += unseen }

// advance moves the ledger's clock to at, and drops what is over by then.
func (l *Ledger) advance(at int64) {
	if at < l.now-int64(putBack) {
		l.book.Rewind(time.Unix(0, at))
		l.rewindFlights(at)
		l.rewindEvictions(at)
		l.now = at
	}
	l.now = max(l.now, at)
	l.dropFlights()
	l.dropEvictions()
	l.dropPairs()
}

func (l *Ledger) time() time.Time { return time.Unix(0, l.now) }

// Now is the time of the latest entry. It falls only if a leader's clock is put back by more than a minute.
func (l *Ledger) Now() time.Time { return l.time() }

// Epoch is the epoch in force, and the replica that leads in it; 0 before the first.
func (l *Ledger) Epoch() (epoch uint64, leader string) { return l.epoch, l.leader }

// LastGrant is the highest number that a grant of this cell ever had. A new leader goes on from there.
func (l *Ledger) LastGrant() uint64 { return l.last }

// Book is the book of accounts. It is changed by entries only.
func (l *Ledger) Book() *share.Book { return l.book }

// Policy is a number that changes whenever an object does: what is made of objects can be kept until then.
func (l *Ledger) Policy() uint64 { return l.policy }

// check panics if an invariant is broken. Tests call it after each entry.
func (l *Ledger) check() {
	if err := l.book.Sound(); err != nil {
		panic(err)
	}
	l.checkFlights(l.flights, FlightLife)
	l.checkFlights(l.licensed, licensedLife)
	for i, e := range l.evicted {
		if e.At > l.now || e.At <= l.now-int64(EvictionLife) || i > 0 && e.At < l.evicted[i-1].At {
			panic(fmt.Sprintf("ledger: eviction of %s at %d stands there at %d", e.Job, e.At, l.now))
		}
	}
	for key, p := range l.pairs {
		if key != p.key() || nanos(p.Until) <= l.now {
			panic(fmt.Sprintf("ledger: pair %v is kept at %d", p, l.now))
		}
	}
	for kind, all := range l.objects {
		for name, o := range all {
			if o.thing != nil && o.thing.name() != name {
				panic(fmt.Sprintf("ledger: %s %q is kept as %q", kind, o.thing.name(), name))
			}
		}
	}
}

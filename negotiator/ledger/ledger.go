package ledger

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// Bounds of the ledger.
const (
	maxAvoidPairs = 100_000
	maxObjects    = 100_000 // of one kind
)

// maxClockSkew is how far an entry's time may lie before that of the one before and still
// be taken for the unevenness of two leaders' clocks. Beyond it the clock was wrong and
// has been put right: the ledger's goes back with it, or nothing would be charged until
// the wrong time has come.
const maxClockSkew = time.Minute

// maxTime bounds the times of entries: 1 January 2200. Beyond 2262 they do not fit 64
// bits.
const maxTime = 7258118400 * int64(time.Second)

// Ledger is the replicated state. The zero value is not ready for use: see [New].
type Ledger struct {
	now           int64
	epoch         uint64
	leader        string
	lastGrant     uint64 // the highest number that a grant has had
	accountant    *fairshare.Accountant
	pendingGrants []PendingGrant // oldest first
	limitedGrants []PendingGrant // those with licences, likewise
	evictions     []TaskEviction // in the last hour, oldest first
	avoidPairs    map[avoidPairKey]AvoidPair
	avoidPairsDue int64 // when the first of them is over
	objects       map[ObjectKind]map[string]*storedObject
	policyVersion uint64 // counts changes of objects
}

// New returns a ledger in which nothing has happened.
func New() *Ledger {
	return &Ledger{accountant: fairshare.NewAccountant(0), avoidPairs: map[avoidPairKey]AvoidPair{},
		objects: map[ObjectKind]map[string]*storedObject{}}
}

// Apply takes in the next entry of the log.
func (l *Ledger) Apply(e *LogEntry) EntryResult {
	switch {
	case e.At <= 0 || e.At > maxTime:
		return EntryResult{l.epoch, fmt.Errorf("ledger: %w: an entry has the time %d, which no clock shows",
			roost.Invalid, e.At), nil}
	case e.Lead == "" && e.Epoch != l.epoch:
		return EntryResult{l.epoch, fmt.Errorf("ledger: %w: an entry of epoch %d, and it is %d", roost.Stale, e.Epoch,
			l.epoch), nil}
	}
	if e.Lead != "" {
		l.prepareNewLeader(e.At)
		if mutant.Active(mutant.ChargedTwice) {
			l.accountant.RewindClock(l.clockTime().Add(-5 * time.Second))
		}
	}
	l.advanceClock(e.At)
	if e.Lead != "" {
		l.leader, l.epoch = e.Lead, max(l.epoch+1, uint64(l.now/int64(time.Second)))
	}
	for _, a := range e.Accounts {
		l.addLegacyAccount(a)
	}
	for _, h := range e.Holds {
		l.accountant.SetUsage(l.clockTime(), h.Submitter, h.Cores)
	}
	if mutant.Active(mutant.MapOrder) {
		shuffleGrants(e.Grants)
	}
	for _, g := range e.Grants {
		l.recordEviction(g.Evicted)
		g.Evicted = nil
		l.addPendingGrant(g)
	}
	l.resolveGrants(e.Ended)
	for _, p := range e.Pairs {
		l.addAvoidPair(p)
	}
	var refused []error
	for i := range e.Commands {
		refused = append(refused, l.applyCommand(&e.Commands[i]))
	}
	return EntryResult{l.epoch, nil, refused}
}

// shuffleGrants is how a map orders grants: a bug that is planted.
func shuffleGrants(grants []RecordedGrant) {
	byID := map[uint64]RecordedGrant{}
	for _, g := range grants {
		byID[g.ID] = g
	}
	i := 0
	for _, g := range byID {
		grants[i] = g
		i++
	}
}

// addLegacyAccount opens an account as it was kept elsewhere. One that makes no sense is
// passed over. Who has one already, as another has led before the one that kept this,
// keeps the larger of both: what it has used since then is little, and an entry that is
// proposed twice is charged once.
func (l *Ledger) addLegacyAccount(a fairshare.SubmitterAccount) {
	a.At, a.Factor = min(max(a.At, 0), l.now), fairshare.DefaultFactor // factors are set by objects
	if !l.accountant.HasAccount(a.Submitter) {
		_ = l.accountant.PutAccount(a)
		return
	}
	saved := fairshare.NewAccountant(l.accountant.HalfLife())
	if saved.PutAccount(a) != nil {
		return
	}
	was, now := saved.Account(l.clockTime(), a.Submitter), l.accountant.Account(l.clockTime(), a.Submitter)
	now.Real, now.Used = max(now.Real, was.Real), max(now.Used, was.Used)
	_ = l.accountant.PutAccount(now)
}

// recoveryEpochGap is more leaders than a cell has had that a ledger may know nothing of,
// and more seconds than a clock is wrong by when it is noticed.
const recoveryEpochGap = 100_000

// Recover prepares a ledger whose cell is lost for one that begins with it. The last to
// lead, and what was granted then, may stand only in what is lost: so the epoch goes
// beyond any that machines may have seen since. Naively the next leader's would do, as it
// is the time in seconds; but not where a clock is wrong.
func (l *Ledger) Recover() { l.epoch += recoveryEpochGap }

// advanceClock moves the ledger's clock to at, and drops what is over by then.
func (l *Ledger) advanceClock(at int64) {
	if at < l.now-int64(maxClockSkew) {
		l.accountant.RewindClock(time.Unix(0, at))
		l.rewindPendingGrants(at)
		l.rewindEvictions(at)
		l.now = at
	}
	l.now = max(l.now, at)
	l.dropExpiredGrants()
	l.dropEvictions()
	l.dropExpiredPairs()
}

func (l *Ledger) clockTime() time.Time { return time.Unix(0, l.now) }

// Now is the time of the latest entry. It falls only if a leader's clock is put back by
// more than a minute.
func (l *Ledger) Now() time.Time { return l.clockTime() }

// Epoch is the epoch in force, and the replica that leads in it; 0 before the first.
func (l *Ledger) Epoch() (epoch uint64, leader string) { return l.epoch, l.leader }

// LastGrant is the highest number that a grant of this cell ever had. A new leader goes
// on from there.
func (l *Ledger) LastGrant() uint64 { return l.lastGrant }

// Accountant is the book of accounts. It is changed by entries only.
func (l *Ledger) Accountant() *fairshare.Accountant { return l.accountant }

// PolicyVersion is a number that changes whenever an object does: what is made of objects
// can be kept until then.
func (l *Ledger) PolicyVersion() uint64 { return l.policyVersion }

// check panics if an invariant is broken. Tests call it after each entry.
func (l *Ledger) check() {
	if err := l.accountant.CheckInvariants(); err != nil {
		panic(err)
	}
	l.checkPendingGrants(l.pendingGrants, PendingGrantTTL)
	l.checkPendingGrants(l.limitedGrants, limitedGrantTTL)
	for i, e := range l.evictions {
		if e.At > l.now || e.At <= l.now-int64(EvictionMemory) || i > 0 && e.At < l.evictions[i-1].At {
			panic(fmt.Sprintf("ledger: eviction of %s at %d stands there at %d", e.Job, e.At, l.now))
		}
	}
	for key, p := range l.avoidPairs {
		if key != p.key() || unixNanos(p.Until) <= l.now {
			panic(fmt.Sprintf("ledger: pair %v is kept at %d", p, l.now))
		}
	}
	for kind, all := range l.objects {
		for name, o := range all {
			if o.value != nil && o.value.name() != name {
				panic(fmt.Sprintf("ledger: %s %q is kept as %q", kind, o.value.name(), name))
			}
		}
	}
}

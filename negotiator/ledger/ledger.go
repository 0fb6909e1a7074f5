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
	maxObjects    = 100_000 // for each kind
)

// maxClockSkew bounds how far an entry's time may go back due to clock differences
// between leaders. A larger step means that the earlier clock was wrong and has been
// corrected: the ledger's clock goes back with it. Otherwise no usage would be charged
// until the wrong time is reached.
const maxClockSkew = time.Minute

// maxTime bounds the times of entries: 1 January 2200. Times after 2262 do not fit in 64
// bits.
const maxTime = 7258118400 * int64(time.Second)

// Ledger is the replicated state. The zero value is not usable: see [New].
type Ledger struct {
	now           int64
	epoch         uint64
	leader        string
	lastGrant     uint64 // highest ID of any grant so far
	accountant    *fairshare.Accountant
	pendingGrants []PendingGrant // oldest first
	limitedGrants []PendingGrant // pending grants with concurrency limits, oldest first
	evictions     []TaskEviction // evictions in the last hour, oldest first
	avoidPairs    map[avoidPairKey]AvoidPair
	avoidPairsDue int64 // when the first avoid pair expires, in unix nanoseconds
	objects       map[ObjectKind]map[string]*storedObject
	policyVersion uint64 // counts changes of objects
}

// New returns an empty ledger.
func New() *Ledger {
	return &Ledger{accountant: fairshare.NewAccountant(0), avoidPairs: map[avoidPairKey]AvoidPair{},
		objects: map[ObjectKind]map[string]*storedObject{}}
}

// Apply applies the next entry of the log.
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
		l.grantTable().prepareNewLeader(e.At)
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
		l.accountant.SetUsageElsewhere(l.clockTime(), h.Submitter, h.Elsewhere)
	}
	if mutant.Active(mutant.MapOrder) {
		shuffleGrants(e.Grants)
	}
	for _, g := range e.Grants {
		l.recordEviction(g.Evicted)
		g.Evicted = nil
		l.grantTable().addPendingGrant(g)
	}
	l.grantTable().resolveGrants(e.Ended)
	for _, p := range e.Pairs {
		l.addAvoidPair(p)
	}
	var refused []error
	for i := range e.Commands {
		refused = append(refused, l.commands().applyCommand(&e.Commands[i]))
	}
	return EntryResult{l.epoch, nil, refused}
}

// shuffleGrants reorders grants as the iteration over a map would. It is a planted bug.
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

// addLegacyAccount adds an account from the time before there was a ledger. It skips an
// invalid one. A submitter that has an account already, as another replica led before the
// one that recorded this, keeps the larger of both usages: the usage since then is small,
// and an entry that is proposed twice is charged once.
func (l *Ledger) addLegacyAccount(a fairshare.SubmitterAccount) {
	a.At, a.Factor = min(max(a.At, 0), l.now), fairshare.DefaultFactor // objects set the factors
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

// recoveryEpochGap exceeds the number of leaders that a recovered ledger can have missed.
// It also exceeds the error, in seconds, of a clock before somebody notices it.
const recoveryEpochGap = 100_000

// Recover prepares the ledger of a lost cell to start a new cell. The last leaders and
// their grants may be recorded only in the part that is lost, so the epoch must exceed
// any that machines may have seen since. The epoch of the next leader, which is the time
// in seconds, would suffice with correct clocks, but not with a wrong one.
func (l *Ledger) Recover() { l.epoch += recoveryEpochGap }

// advanceClock sets the ledger's clock to at and drops what has expired by then.
func (l *Ledger) advanceClock(at int64) {
	if at < l.now-int64(maxClockSkew) {
		l.accountant.RewindClock(time.Unix(0, at))
		l.grantTable().rewindPendingGrants(at)
		l.rewindEvictions(at)
		l.now = at
	}
	l.now = max(l.now, at)
	l.grantTable().dropExpiredGrants()
	l.dropEvictions()
	l.dropExpiredPairs()
}

func (l *Ledger) clockTime() time.Time { return time.Unix(0, l.now) }

// Now returns the time of the latest entry. It decreases only if a leader's clock is set
// back by more than a minute.
func (l *Ledger) Now() time.Time { return l.clockTime() }

// Epoch returns the epoch in force and its leader; 0 before the first leader.
func (l *Ledger) Epoch() (epoch uint64, leader string) { return l.epoch, l.leader }

// LastGrant returns the highest grant ID that the cell has used. A new leader continues
// from there.
func (l *Ledger) LastGrant() uint64 { return l.lastGrant }

// Accountant returns the accounts of the submitters. Only entries change them.
func (l *Ledger) Accountant() *fairshare.Accountant { return l.accountant }

// PolicyVersion returns a number that changes with every change of an object. Callers may
// cache what they derive from objects until then.
func (l *Ledger) PolicyVersion() uint64 { return l.policyVersion }

// check panics if an invariant is violated. Tests call it after each entry.
func (l *Ledger) check() {
	if err := l.accountant.CheckInvariants(); err != nil {
		panic(err)
	}
	l.grantTable().checkPendingGrants(l.pendingGrants, PendingGrantTTL)
	l.grantTable().checkPendingGrants(l.limitedGrants, limitedGrantTTL)
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

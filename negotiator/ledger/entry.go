package ledger

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// LogEntry is one step of the replicated log. All of it is applied, or nothing.
type LogEntry struct {
	At       int64  // unix nanoseconds, by the clock of the leader
	Epoch    uint64 // of the leader that proposes it; 0 with Lead
	Lead     string // the replica that leads from now on; empty: the one that did
	Holds    []UsageUpdate
	Grants   []RecordedGrant
	Ended    []uint64 // grants with licences of which it is certain what has become of them
	Pairs    []AvoidPair
	Commands []AdminCommand // each is applied or refused by itself

	// Accounts are taken over from where they were kept before there was a ledger. Who
	// has one already keeps it.
	Accounts []fairshare.SubmitterAccount
}

// UsageUpdate says that a submitter uses so many cores from now on
// ([fairshare.Accountant.Hold]).
type UsageUpdate struct {
	Submitter fairshare.Submitter
	Cores     float64
}

// RecordedGrant is what was promised to a schedd: so many units of a request on one
// machine.
type RecordedGrant struct {
	ID        uint64 // of the first unit; the next ones have the next numbers
	Units     int    // 1 or more
	Schedd    string
	Request   uint64
	Submitter fairshare.Submitter
	Band      roost.PriorityBand
	Machine   string
	Started   int64           // of the machine's startd, as its ad says
	Resources roost.Resources // of one unit
	Stream    bool            // the appclass is stream
	Waiting   bool            // it is a place in the queue of Unit
	Unit      int
	Limits    []LimitUse // licences that each unit takes
	Victims   []uint64   // claims of that machine that make room
	Evicted   []string   // jobs of which tasks go for it, one for each task; "" where nobody knows which
	ClaimBy   int64      // not 0: it has to be a claim before the machine's clock shows more, in nanoseconds
}

// LimitUse is so many of a concurrency limit.
type LimitUse struct {
	Limit string
	Count int64
}

// EntryResult is what came of an entry.
type EntryResult struct {
	Epoch uint64 // that is in force after it
	// the entry was not applied: roost.Stale, from a leader that leads no more;
	// roost.Invalid, from a clock that makes no sense
	Err error

	// Commands says of each command why it was refused, or nil.
	Commands []error
}

package ledger

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// LogEntry is one entry of the replicated log. A replica applies all of it or nothing.
type LogEntry struct {
	At       int64  // unix nanoseconds, by the leader's clock
	Epoch    uint64 // epoch of the leader that proposes the entry; 0 with Lead
	Lead     string // name of the replica that leads from now on; empty: no change
	Holds    []UsageUpdate
	Grants   []RecordedGrant
	Ended    []uint64 // IDs of grants with concurrency limits whose outcome is certain
	Pairs    []AvoidPair
	Commands []AdminCommand // each is applied or refused by itself

	// Accounts are accounts from the time before there was a ledger. Submitters that have
	// an account already keep it.
	Accounts []fairshare.SubmitterAccount
}

// UsageUpdate sets the cores that a submitter uses from now on
// ([fairshare.Accountant.SetUsage]).
type UsageUpdate struct {
	Submitter fairshare.Submitter
	Cores     float64
	Elsewhere float64 // cores in other pools ([fairshare.Accountant.SetUsageElsewhere])
}

// RecordedGrant is a grant of units of one request on one machine to a schedd.
type RecordedGrant struct {
	ID        uint64 // ID of the first unit; the next units have the next numbers
	Units     int    // number of units, 1 or more
	Schedd    string
	Request   uint64
	Submitter fairshare.Submitter
	Band      roost.PriorityBand
	Machine   string
	Started   int64           // start time of the machine's startd, as its ad states
	Resources roost.Resources // resources of one unit
	Stream    bool            // the appclass is stream
	Waiting   bool            // the grant is a place in the queue of Unit
	Unit      int
	Limits    []LimitUse // concurrency limits that each unit uses
	Victims   []uint64   // IDs of the claims on the machine that are evicted for the grant
	Evicted   []string   // the job of each task that is evicted for the grant; "" if unknown
	ClaimBy   int64      // clock reading of the machine, in ns, by which it must become a claim; 0: none
}

// LimitUse is a number of units of a concurrency limit.
type LimitUse struct {
	Limit string
	Count int64
}

// EntryResult is the result of applying an entry.
type EntryResult struct {
	Epoch uint64 // epoch in force after the entry
	// why the entry was not applied: roost.Stale for an entry of a deposed leader,
	// roost.Invalid for an impossible time
	Err error

	// Commands contains, for each command, why it was refused, or nil.
	Commands []error
}

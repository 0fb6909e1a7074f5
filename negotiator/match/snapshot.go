package match

import (
	"cmp"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// Snapshot is the pool as a plan sees it.
type Snapshot struct {
	Now      time.Time          // what time() says in expressions
	Reclaim  roost.ReclaimLevel // how boldly machines may reclaim for work to be placed there
	Machines []*Machine         // in the order of their names
	Requests []*Request
	// Pending is what was promised of a machine and does not show in its ad yet, by the
	// machine's name.
	Pending map[string][]PendingGrant
	// Shares is how each submitter stands; one that is missing has nothing and the least
	// priority. Where there are groups, everybody who has something is needed.
	Shares map[fairshare.Submitter]SubmitterShare
	// Limits are the licences and run limits of which requests take, by name. What is
	// missing is not limited.
	Limits map[string]ConcurrencyLimit
	// Backfill is what is held for those that find no room.
	Backfill     BackfillSettings
	Reservations []AdvanceReservation // by name, in order
	Drains       []MachineDrain       // by node, in order
	// Groups are the accounting groups that have quotas; what they request is worked out.
	// Without any the pool is everybody's.
	Groups []fairshare.AccountingGroup
	// Oversubscribe lets static quotas hold that add up to more than there is.
	Oversubscribe bool
	// RecentStarts are what was granted in the last minutes, in order of time: what tells
	// how fast what waits gets its turn.
	RecentStarts []RecentStart
	// Preemption is who may be displaced.
	Preemption PreemptionPolicy
	// Score says which of the machines that suit equally well a unit goes to.
	Score ScorePolicy
}

// SubmitterShare is what fair share needs to know of a submitter.
type SubmitterShare struct {
	EffectivePriority float64         // effective priority, fairshare.Accountant's
	Usage             roost.Resources // by its claims and by grants that are on their way
	Floor             float64         // cores that it gets before others get more than theirs; 0 for none
	Ceiling           float64         // cores that it never has more of; 0 for none
}

// RecentStart is so many units that a machine was granted to.
type RecentStart struct {
	At        int64 // unix seconds
	Machine   string
	Resources roost.Resources // of one unit
	Units     int
}

// RequestKey names a request in the pool.
type RequestKey struct {
	Schedd string
	ID     uint64
}

// Compare orders keys by schedd, then by number.
func (k RequestKey) Compare(other RequestKey) int {
	if c := strings.Compare(k.Schedd, other.Schedd); c != 0 {
		return c
	}
	return cmp.Compare(k.ID, other.ID)
}

// Request is what one schedd wants for tasks that are alike.
type Request struct {
	Key       RequestKey
	Submitter fairshare.Submitter
	Band      roost.PriorityBand
	// an operator wants it to run now: before all others, past fair share, quotas and
	// limits on what runs
	Now      bool
	Priority int32
	Oldest   int64 // unix nanoseconds
	Wanted   int   // units; a unit is one claim
	NoQueue  int   // of those: not to be sent where they would have to wait, because they do already
	Class    *RequestClass
	Gang     int // above 1: so many units start together or not at all; Wanted is a multiple
	// other requests, not in the snapshot themselves, whose units are of the one gang of
	// this one: all of Wanted of each
	Parts            []*Request
	Walltime         time.Duration     // after which a unit is ended; 0: never
	PredictedRuntime time.Duration     // how long one is expected to take; 0: nobody knows
	Reservation      string            // the only one in which it may run; empty: in none
	RunLimits        []LimitRequest    // the limits of its user and its queue
	SoftLimits       []LimitRequest    // those that it may go beyond when all others of its band have had their turn
	Avoid            map[string]string // machines that are not to be tried now, by name, and why
	SelfPlacements   []SelfPlacement   // where its schedd would have them; none: the plan chooses
	// unix seconds: since when some of it has waited in every plan; 0: since this one
	WaitingSince int64
	Explain      bool // say why, if not all could be placed
}

// Plan is who gets what.
type Plan struct {
	Grants      []Grant // in the order in which they were decided
	Unplaced    []UnplacedRequest
	Conflicts   []PlacementConflict // proposals that could not be granted
	Unavailable []UnavailableWindow // the drains, then the reservations
	// what is held for those that found no room, in the order in which that was decided
	BackfillReservations []BackfillReservation
}

// UnavailableWindow is a machine of which at least a part is drained or reserved. Nothing
// new is granted there that would not end before; but schedds put one task after the
// other on the claims that they have, and have to know.
type UnavailableWindow struct {
	Machine     string
	From, Until int64  // unix seconds; Until 0: until it is taken back
	Reservation string // of those who may run there; "": it is drained
}

// Grant is so many units of a request on one machine.
type Grant struct {
	Request        *Request
	Machine        *Machine
	Units          int
	Gang           int      // not 0: of one gang with the grants of the same number
	Waiting        bool     // it is a place in the queue of a resource unit: the machine has no room for it now
	Unit           int      // Waiting: of the machine's, which
	WaitSeconds    float64  // Waiting: seconds, as predicted
	Victims        []uint64 // claims of the machine that have to go for it, which then is of one unit
	EvictionReason string   // they have to, for those whose they are
}

// Resources is what each unit of the grant takes of its machine.
func (g *Grant) Resources() roost.Resources {
	if g.Request.Class.Exclusive {
		return g.Machine.Total
	}
	return g.Request.Class.Resources
}

// UnplacedRequest is a request that has to wait, in whole or in part.
type UnplacedRequest struct {
	Request     *Request
	Missing     int              // units
	Awaits      bool             // for some of these, claims are leaving already
	NoRoom      bool             // no machine has room for it; else something keeps it from looking, such as a limit
	Explanation *WaitExplanation // nil unless asked for
}

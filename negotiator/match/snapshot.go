package match

import (
	"cmp"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// Snapshot is the state of the pool that a cycle plans from.
type Snapshot struct {
	Now      time.Time          // the value of time() in expressions
	Reclaim  roost.ReclaimLevel // the boldest level at which machines may reclaim for the units placed there
	Machines []*Machine         // in the order of their names
	Requests []*Request
	// Pending lists, by machine name, the grants that the machine's ad does not show yet.
	Pending map[string][]PendingGrant
	// Shares holds the fair-share state of each submitter. A missing submitter has no
	// usage and the best possible priority. Where there are groups, every submitter with
	// usage must be present.
	Shares map[fairshare.Submitter]SubmitterShare
	// Limits are the licences and run limits that requests count against, by name. A name
	// that is missing is not limited.
	Limits map[string]ConcurrencyLimit
	// Backfill configures the reservations for requests that find no room.
	Backfill     BackfillSettings
	Reservations []AdvanceReservation // in the order of their names
	Drains       []MachineDrain       // in the order of their nodes
	// Groups are the accounting groups that have quotas; the cycle computes their
	// Requested. Without groups everything is one pool.
	Groups []fairshare.AccountingGroup
	// Guests are the groups of guests whose share is bounded, by name.
	Guests map[string]GuestShare
	// Oversubscribe allows static quotas whose sum is more than the pool has.
	Oversubscribe bool
	// RecentStarts are the grants of the last minutes, in order of time. The start
	// estimates take from them how fast the queue moves.
	RecentStarts []RecentStart
	// Preemption configures which claims may be preempted.
	Preemption PreemptionPolicy
	// Score chooses among the machines that are otherwise equally good for a unit.
	Score ScorePolicy
	// MixBands places production away from other production, and other bands beside it.
	MixBands bool
	// FailureDomains are machine attributes, the widest domain first, over whose values
	// the units of a production job are spread that names no attribute itself. At most
	// MaxFailureDomains count.
	FailureDomains []string
}

// MaxFailureDomains is how many nested failure domains a cell can have.
const MaxFailureDomains = 3

// SubmitterShare is what fair share needs to know of a submitter.
type SubmitterShare struct {
	EffectivePriority float64         // as fairshare.Accountant computes it; lower is better
	Usage             roost.Resources // of its claims and its pending grants
	// cores that it gets before others get more than their own floors; 0: no floor
	Floor   float64
	Ceiling float64 // cores that it never exceeds; 0: no ceiling
	// by how much its unfinished jobs in batch exceed its quota there, and its priority
	// counts as worse there; 0 or 1: they do not
	OverQuota float64
}

// RecentStart records that a machine was granted to some units at one time.
type RecentStart struct {
	At        int64 // unix seconds
	Machine   string
	Resources roost.Resources // of one unit
	Units     int
}

// GuestShare bounds what all users of another pool have together, in cores.
type GuestShare struct{ Usage, Ceiling float64 }

// RequestKey identifies a request in the pool.
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

// Request asks for machines for the tasks of one schedd that are alike.
type Request struct {
	Key       RequestKey
	Submitter fairshare.Submitter
	Band      roost.PriorityBand
	// an operator ordered it to run now: before all others, without regard to fair share,
	// quotas and run limits
	Now      bool
	Priority int32
	// units of Wanted that have Priority; the others have a lower one, or it is unknown
	PriorityUnits int
	Oldest        int64 // unix nanoseconds: when its oldest task was submitted
	Wanted        int   // units; each unit becomes one claim
	NoQueue       int   // units of Wanted that must not go into a node queue, because they wait in one already
	Class         *RequestClass
	Gang          int // above 1: this many units start together or not at all, and Wanted is a multiple of it
	// other requests, not in the snapshot themselves, that belong to the same gang:
	// Wanted units of each
	Parts            []*Request
	Walltime         time.Duration  // after which a unit is ended; 0: never
	PredictedRuntime time.Duration  // how long a unit is expected to take; 0: unknown
	Reservation      string         // the only reservation in which it may run; empty: in none
	RunLimits        []LimitRequest // the limits of its user and its queue
	// limits that it may exceed once all others of its band have had their turn
	SoftLimits     []LimitRequest
	Avoid          map[string]string // machines that must not be tried now, by name, with the reason
	SelfPlacements []SelfPlacement   // where its schedd proposes to run it; none: the plan chooses
	// unix seconds: since when some of its units waited in every plan; 0: since this plan
	WaitingSince int64
	Explain      bool // explain why, if some units cannot be placed
}

// Plan is the result of a cycle.
type Plan struct {
	Grants      []Grant // in the order in which they were decided
	Unplaced    []UnplacedRequest
	Conflicts   []PlacementConflict // proposals of schedds that could not be granted
	Unavailable []UnavailableWindow // first the drains, then the reservations
	// reservations for requests that found no room, in the order in which they were
	// decided
	BackfillReservations []BackfillReservation
}

// UnavailableWindow is a machine of which at least a part is drained or reserved. Nothing
// new is granted there unless it ends before; schedds need the window because they run
// one task after another on their claims.
type UnavailableWindow struct {
	Machine     string
	From, Until int64  // unix seconds; Until 0: until the order is taken back
	Reservation string // whose members may run there; "": the machine is drained
}

// Grant gives some units of a request a machine.
type Grant struct {
	Request        *Request
	Machine        *Machine
	Units          int
	Gang           int      // not 0: grants with the same number belong to one gang
	Waiting        bool     // the grant is a place in a node queue, because the machine has no room for it now
	Unit           int      // number of the resource unit of the queue, if Waiting
	WaitSeconds    float64  // predicted wait in seconds, if Waiting
	Victims        []uint64 // claims of the machine that are evicted for it; the grant is then of one unit
	EvictionReason string   // why Victims are evicted, for their users
}

// Resources returns what each unit of the grant takes of its machine.
func (g *Grant) Resources() roost.Resources {
	if g.Request.Class.Exclusive {
		return g.Machine.Total
	}
	return g.Request.Class.Resources
}

// UnplacedRequest is a request that has to wait, in whole or in part.
type UnplacedRequest struct {
	Request *Request
	Missing int  // units that were not placed
	Awaits  bool // claims are already leaving for some of the missing units
	// no machine has room for it; if false, something else excludes it, such as a limit
	NoRoom      bool
	Explanation *WaitExplanation // nil unless the request asked for it
}

package metrics

// Bounds of the open labels of a negotiator.
const (
	maxGroups = 100
	maxPeers  = 8
)

// Negotiator is the metrics of a negotiator.
type Negotiator struct {
	CycleTime   *Histogram
	CommitTime  *Histogram
	Grants      *Counter // by band and result
	Preemptions *Counter // by band
	Snapshots   *Published[NegotiatorSnapshot]
	Replicas    *Published[ReplicaSnapshot]
	SecretReads *Counter // by result
}

// Results of reads of secrets.
const (
	SecretGiven   = iota
	SecretRefused // there is none, or the job may not have it
	SecretFailed  // the leader could not tell, or has no key
)

// Results of grants.
const (
	GrantMade    = iota // and committed
	GrantClaimed        // the machine has made a claim of it
	GrantRefused
	GrantExpired // nobody has said what became of it
)

// NegotiatorSnapshot is the state of a negotiator at one instant. One that does not lead
// knows the machines, and nothing of requests.
type NegotiatorSnapshot struct {
	IsLeader   bool
	Epoch      uint64
	Machines   int
	Schedds    int
	Unplaced   [WaitReasonCount]int // requests
	Cores      [AmountStates]float64
	GPUs       [AmountStates]float64
	GroupCores map[string]float64
	Secrets    [2]int // of users, and of groups

	GuestSchedds  int                // that are connected, of other pools
	GuestCores    map[string]float64 // cores that users of another pool have, by pool
	GuestRequests map[string]float64 // requests of another pool, by pool
	GuestRefusals map[string]float64 // those of them that are refused, by pool
}

// ReplicaSnapshot is how the replicas of a cell are, as its leader sees them.
type ReplicaSnapshot struct {
	States [3]int             // voters: ReplicaCurrent, ReplicaBehind, ReplicaSilent
	Behind map[string]float64 // entries that a replica lacks, by its node
}

// States of replicas.
const (
	ReplicaCurrent = iota // could lead at once
	ReplicaBehind
	ReplicaSilent // does not answer
)

// NewNegotiator registers the metrics of a negotiator, whose state is in dir. With a nil
// registry nothing is counted.
func NewNegotiator(r *Registry, dir string) *Negotiator {
	n := &Negotiator{
		CycleTime:  r.Histogram("cycle_seconds", "Time of one cycle of matching.", fastBuckets),
		CommitTime: r.Histogram("commit_seconds", "Time until a majority of the replicas had an entry.", fastBuckets),
		Grants: r.Counter("grants_total",
			"Grants that were made, and what became of them: claimed, refused, or expired without an answer.",
			bandLabel(), Label{Name: "result", Values: []string{"made", "claimed", "refused", "expired"}}),
		Preemptions: r.Counter("preemptions_total",
			"Claims that were chosen to leave for a grant, by the band of the grant.", bandLabel()),
	}
	n.SecretReads = r.Counter("secret_reads_total",
		"Reads of secrets for attempts, by result: given, refused to jobs that may not have them, or failed.",
		Label{Name: "result", Values: []string{"given", "refused", "failed"}})
	n.Snapshots = newNegotiatorSnapshots(r)
	n.Replicas = newReplicaSnapshots(r)
	r.AddDisk(dir)
	r.seal()
	return n
}

func newNegotiatorSnapshots(r *Registry) *Published[NegotiatorSnapshot] {
	leader := r.Gauge("leader", "1 where this negotiator leads the cell, else 0.")
	epoch := r.Gauge("term", "The highest epoch that this negotiator knows; each new leader has a higher one.")
	machines := r.Gauge("machines", "Machines that this negotiator knows.")
	schedds := r.Gauge("schedds", "Schedds that are connected to this leader.")
	unplaced := r.Gauge("unplaced_requests",
		"Requests of which something waits after the last cycle, by the reason that excludes most machines.",
		waitReasonLabel())
	cores := r.Gauge("pool_cores", "Cores of all machines, by state.", amountLabel())
	gpus := r.Gauge("pool_gpus", "GPUs of all machines, by state.", amountLabel())
	secrets := r.Gauge("secrets", "Secrets of the cell; only the leader has it.",
		Label{Name: "of", Values: []string{"users", "groups"}})
	groups := r.Gauge("group_cores",
		"Cores in use by group, its parts left out; the 100 largest, and the rest as other.",
		Label{Name: "group", Most: maxGroups})
	guests := newGuestGauges(r)
	return newDaemonState(r, func(to *Reading, s *NegotiatorSnapshot) {
		to.Set(leader, oneIf(s.IsLeader))
		to.Set(epoch, float64(s.Epoch))
		to.Set(machines, float64(s.Machines))
		for i := range AmountStates {
			to.Set(cores, s.Cores[i], i)
			to.Set(gpus, s.GPUs[i], i)
		}
		if !s.IsLeader {
			return
		}
		to.Set(schedds, float64(s.Schedds))
		for i, n := range s.Secrets {
			to.Set(secrets, float64(n), i)
		}
		for i, n := range s.Unplaced {
			to.Set(unplaced, float64(n), i)
		}
		to.SetLargest(groups, s.GroupCores)
		guests.set(to, s)
	})
}

// guestGauges are the gauges of other pools that run tasks in this one.
type guestGauges struct{ schedds, cores, requests, refused *Gauge }

func newGuestGauges(r *Registry) guestGauges {
	pool := Label{Name: "pool", Most: maxFlockPools}
	return guestGauges{
		schedds: r.Gauge("guest_schedds", "Schedds of other pools that are connected to this leader."),
		cores:   r.Gauge("guest_cores", "Cores that users of another pool have in this one, by pool.", pool),
		requests: r.Gauge("guest_requests", "Requests of another pool that wait here or have claims, by pool.",
			pool),
		refused: r.Gauge("guest_requests_refused",
			"Requests of another pool that are refused for what they say, by pool.", pool),
	}
}

func (g guestGauges) set(to *Reading, s *NegotiatorSnapshot) {
	to.Set(g.schedds, float64(s.GuestSchedds))
	to.SetLargest(g.cores, s.GuestCores)
	to.SetLargest(g.requests, s.GuestRequests)
	to.SetLargest(g.refused, s.GuestRefusals)
}

func newReplicaSnapshots(r *Registry) *Published[ReplicaSnapshot] {
	replicas := r.Gauge("replicas", "Voting replicas of the cell by state; only the leader has it.",
		Label{Name: "state", Values: []string{"current", "behind", "silent"}})
	behind := r.Gauge("replica_behind", "Entries of the log that a replica lacks; only the leader has it.",
		Label{Name: "peer", Most: maxPeers})
	return newPublished(r, func(to *Reading, s *ReplicaSnapshot) {
		if len(s.Behind) == 0 {
			return
		}
		for i, n := range s.States {
			to.Set(replicas, float64(n), i)
		}
		to.SetLargest(behind, s.Behind)
	})
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

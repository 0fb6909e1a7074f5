// Package mutant names bugs that are put into Roost on purpose, at least one for each
// guarantee, so that a test can prove that the simulator finds them. Each is one
// condition at its place in the running code: usually what the naive way would do there.
// In an ordinary build [Active] is false, and the compiler drops the condition and the
// guarded code; built with -tags plants, one bug at a time can be activated.
package mutant

// Mutant is one such bug; 0 is none.
type Mutant uint8

// The bugs, with the guarantee that each violates.
const (
	AnsweredBeforeDurable Mutant = iota + 1 // P1: a user gets an answer before the log is on disk
	KeyForgotten                            // P2: a submit key is forgotten when its job has started
	// P3: the end of an attempt counts as the end of the present attempt, whichever that
	// is
	StaleExitAccepted
	// P4: an attempt counts as ended when its lease expires, without the time to kill it
	LeaseWithoutKillMargin
	LeasesExpireOnRestart // P4: a restarted schedd treats the leases of running tasks as expired
	// P4: a renewal counts from when the node reads it, and not from when it was sent
	RenewalCountedOnReceipt
	// P4: any machine that answers at an address is taken for the wanted one
	NodeNotVerified
	// P4: a job whose record lost something on the disk runs again beside an attempt that
	// is not on record
	UnrecordedAttemptIgnored
	// P5: what a claim holds is given to others when its attempt is ordered to end
	RoomFreedBeforeExit
	RoomForgottenOnRestart // P5: a restarted startd gives away what the claims of running tasks hold
	ChargedTwice           // P6: a new leader charges the last seconds of the old one again
	MapOrder               // P7: the grants of an entry are applied in the order of a map
	// P7: a damaged log of a replica is taken for what was written (in package consensus
	// of the simulator, which models the real log)
	LogUnchecked
	HoldIgnored      // P8: a hold waits for the next attempt
	LeaderNotUpdated // P9: a new leader does not get existing requests
	LeaseAdded       // P10: a renewal is added to the rest of a lease
	EndBeforeOutput  // P11: the end of an attempt is recorded while its output is being fetched
	OutputUnchecked  // P11: whatever a node sends as output is stored
	ResumesOnRestart // to machine owners: a restarted startd resumes all frozen tasks
	IgnoresLostGuard // to machine owners: a machine still accepts claims when its guard is silent
	// S1: an update stops as many tasks at once as it may replace, whatever is down
	BudgetIgnored
	UpdateDoneEarly // S4: an update ends when no task is being replaced
	BackoffSkipped  // S13: a task that ends by itself is started again at once
	SettlingMissed  // S14: an update is looked at when something happens, and not when time is up
	// S1: a drained machine counts only what drains have taken down; the random work of
	// package schedd/queue finds it too
	BudgetOfOneCause
	RestartUnbounded // S1: all tasks whose checks fail are started again at once
	SurgeUnbounded   // S2: an update adds as many tasks as there are, whatever its surge is
	// S9: a machine that has refused a size is taken to have given it
	ResizeRefusalIgnored
	// S15, which the random loads of package schedd/queue/autoscale find, too: a service
	// gets as many tasks as its load asks for, whatever its max is
	ScaledPastMax
	// S9: each claim inside an alloc may have as much as the alloc, whatever others have
	// inside
	AllocUncounted
	// P1: the leader of a replicated queue acts while the members have yet to commit what
	// it does
	ActsUncommitted
	// P4: a new leader of a replicated queue gives up what the one before has begun to
	// start, and starts it again
	UnstartedForgotten
	// S3: an update stops as many running tasks as it takes, whatever its bound is
	DisruptionsUncounted
	// S10, as the random schedules of package schedd/queue find, too: nobody looks
	// whether an instant of a schedule has its run
	RunDoubled
	// S10, likewise: an instant is decided before its run is in the log
	RunLost
	// S5: an undo leaves tasks the size that they have
	SizeNotUndone
	// P4: a deposed leader of a replicated queue sends on what it decided before, such as
	// renewals of leases
	LeaderUnconfirmed
	SilentNamed     // S6: the names of a machine that is silent stay until its ad expires
	ReturnUnnoticed // S7: a machine that was silent gets no names when it is heard again
	OldAttemptNamed // S8: a name points to an attempt although there is a newer one
	InsideCharged   // P6: what is inside an alloc is charged beside the alloc
	// S15: the tasks of a service become as large as their use asks for, whatever their
	// max is
	SizedPastMax
	FlowPartDoubled // F1: nobody looks whether a part of a flow's node has its job
	FlowPartLost    // F1: a part of a flow's node is said to run before its job is in the log
	// G5: an epoch of a gang is committed when the images of some of its tasks are home
	HalfEpochSaved
	SupplyUncounted     // V6: nodes are asked for again while those for the same tasks are to come
	CostUnbounded       // V3: nobody looks what a provider's allocations may cost before one more is asked for
	StatusErrorIsEnd    // V7: an allocation that an outer system does not name once has ended
	UnansweredForgotten // V8: a submit without an answer is taken for refused, and is submitted again
	FeedCutEarly        // A1: the accounting feed is cut up to its end, whatever the accountant has stored
	// A1: a restarted schedd does not derive what the log of its accounting feed lacks
	FeedRestartForgets
	// A1: entries that come late do not have the hours counted anew that they change
	LateHoursUnmarked
	// D1, which the random jobs of package schedd/queue find: a job that waits for one of
	// several others waits for all of them
	AlternativesJoined
	// D1: a task of an array starts whatever has become of the task with its index
	IndexUnchecked
	// R1, which the random cells of package negotiator/match find: priority displaces for
	// the units of a request that do not have it, too
	PriorityUnitsIgnored
	// R1: tasks of the same priority displace each other
	PriorityStepIgnored
	// P9: the leader is told how an attempt ended before that is on disk, and again
	// after a restart
	OutcomeReportedEarly
	mutantCount = iota
)

var mutantNames = [...]string{
	AnsweredBeforeDurable: "answer-early", KeyForgotten: "key-forgotten", StaleExitAccepted: "old-news",
	LeaseWithoutKillMargin: "no-drift", LeasesExpireOnRestart: "lost-lease", RenewalCountedOnReceipt: "late-renewal",
	NodeNotVerified: "any-node", UnrecordedAttemptIgnored: "unrecorded", RoomFreedBeforeExit: "early-room",
	RoomForgottenOnRestart: "forgotten-room", ChargedTwice: "charged-twice", MapOrder: "map-order",
	LogUnchecked: "unchecked", HoldIgnored: "deaf-hold", LeaderNotUpdated: "unannounced",
	LeaseAdded: "lease-added", EndBeforeOutput: "early-end", OutputUnchecked: "any-output",
	ResumesOnRestart: "restless", IgnoresLostGuard: "trusting",
	BudgetIgnored: "no-budget", UpdateDoneEarly: "early-done", BackoffSkipped: "no-backoff",
	SettlingMissed:   "missed-settling",
	BudgetOfOneCause: "own-budget", RestartUnbounded: "restart-unbounded",
	SurgeUnbounded: "surge-unbounded", ResizeRefusalIgnored: "resize-taken",
	ActsUncommitted: "acts-uncommitted", UnstartedForgotten: "unstarted-forgotten",
	RunDoubled: "run-doubled", RunLost: "run-lost",
	DisruptionsUncounted: "disruptions-uncounted", SizeNotUndone: "size-not-undone",
	ScaledPastMax: "past-max", AllocUncounted: "alloc-uncounted",
	LeaderUnconfirmed: "leader-unconfirmed", SilentNamed: "silent-named", ReturnUnnoticed: "return-unnoticed",
	OldAttemptNamed: "old-named", InsideCharged: "inside-charged",
	SizedPastMax: "sized-past-max", FlowPartDoubled: "flow-part-doubled", FlowPartLost: "flow-part-lost",
	HalfEpochSaved:  "half-epoch-saved",
	SupplyUncounted: "supply-uncounted", CostUnbounded: "cost-unbounded", StatusErrorIsEnd: "status-error-is-end",
	UnansweredForgotten: "unanswered-forgotten",
	FeedCutEarly:        "feed-cut-early", FeedRestartForgets: "feed-restart-forgets",
	LateHoursUnmarked: "late-hours-unmarked", AlternativesJoined: "alternatives-joined",
	IndexUnchecked: "index-unchecked", PriorityUnitsIgnored: "priority-units-ignored",
	PriorityStepIgnored: "priority-step-ignored", OutcomeReportedEarly: "outcome-reported-early",
}

// guarantees lists the number of the guarantee that each bug violates. 12 is the
// guarantee to machine owners, and those from 13 on are about services (S1, S4, S13,
// S14, S2, S9, S15, S3, S10, S5, S6, S7, S8). 26 is that of flows, F1, 27 that
// of gangs, G5, those from 28 on are about provisioners (V6, V3, V7, V8), and 32 is that
// of the accounts: each attempt of each queue is in them once (A1). 33 is that of
// dependencies: a job starts when what it waits for has come, and not before (D1). 34 is
// that of priorities: they displace only what they may, and for what has them (R1).
var guarantees = [...]int{
	AnsweredBeforeDurable: 1, KeyForgotten: 2, StaleExitAccepted: 3, LeaseWithoutKillMargin: 4,
	LeasesExpireOnRestart: 4, RenewalCountedOnReceipt: 4, NodeNotVerified: 4, UnrecordedAttemptIgnored: 4,
	RoomFreedBeforeExit: 5, RoomForgottenOnRestart: 5, ChargedTwice: 6, MapOrder: 7, LogUnchecked: 7, HoldIgnored: 8,
	LeaderNotUpdated: 9, LeaseAdded: 10, EndBeforeOutput: 11, OutputUnchecked: 11, ResumesOnRestart: 12,
	IgnoresLostGuard: 12, BudgetIgnored: 13, UpdateDoneEarly: 14, BackoffSkipped: 15, SettlingMissed: 16,
	BudgetOfOneCause: 13, RestartUnbounded: 13, SurgeUnbounded: 17, ResizeRefusalIgnored: 18,
	ScaledPastMax: 19, AllocUncounted: 18,
	ActsUncommitted: 1, UnstartedForgotten: 4, DisruptionsUncounted: 20, RunDoubled: 21, RunLost: 21,
	SizeNotUndone: 22, LeaderUnconfirmed: 4, SilentNamed: 23, ReturnUnnoticed: 24, OldAttemptNamed: 25,
	InsideCharged: 6, SizedPastMax: 19, FlowPartDoubled: 26, FlowPartLost: 26,
	HalfEpochSaved: 27, SupplyUncounted: 28, CostUnbounded: 29, StatusErrorIsEnd: 30, UnansweredForgotten: 31,
	FeedCutEarly: 32, FeedRestartForgets: 32, LateHoursUnmarked: 32,
	AlternativesJoined: 33, IndexUnchecked: 33, PriorityUnitsIgnored: 34, PriorityStepIgnored: 34,
	OutcomeReportedEarly: 9,
}

// All lists the bugs.
func All() []Mutant {
	all := make([]Mutant, 0, mutantCount)
	for b := AnsweredBeforeDurable; int(b) <= mutantCount; b++ {
		all = append(all, b)
	}
	return all
}

// String returns the name of a bug, in words of lower-case letters.
func (b Mutant) String() string { return mutantNames[b] }

// Guarantee returns the number of the guarantee that the bug violates.
func (b Mutant) Guarantee() int { return guarantees[b] }

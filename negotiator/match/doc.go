// Package match is the core of the negotiator: a pure function from a snapshot of the
// pool to a plan. The plan says which request gets which machine, and why the others
// wait.
//
// # Order
//
// Bands are placed from high to low; each band sees what the higher bands have left.
// Within a band, submitters take turns by fair share ([fairshare.TurnQueue]). Within a
// submitter, the request with the highest priority goes first, then the oldest. A request
// that finds no machine does not block those behind it. Stream requests go before the
// batch requests of their band, the oldest first, and take no turns: see
// place_streams.go.
//
// Where there are groups with quotas, the bands below prod are limited by them: see
// [fairshare.DivideQuotas]. Groups are served one after the other, first the one that
// uses the smallest part of its quota, and their submitters take turns inside them. A
// submitter below its floor goes before the others, and no submitter gets more than its
// ceiling.
//
// # Feasibility and score
//
// A machine is feasible for a request if the request's Requirements hold with the machine
// as TARGET, the machine's Requirements (or its Start, where it has none) hold with the
// request as TARGET, and the resources are free. Of the feasible machines the best has
//
//	the highest Rank
//	then the most expressions of Prefer that hold
//	then the fewest PreferredPackages missing
//	then the fewest units of the job in its failure domain (the attribute of Spread)
//	then the lowest score: stranded resources and half-used machines
//	     (see [balanceScore]); on machines with GPUs, those that become useless
//	     (see [fragmentScore])
//	then the first name
//
// Simulations may choose another score: see [ScorePolicy].
//
// As many units of the turn as fit go to that machine; then the cycle looks for the next
// best. Units of a job that is to be spread, and units on machines with GPUs, are placed
// one at a time.
//
// On a machine of one resource unit without devices, the free resources are one vector of
// sums. On any other machine, package gpu decides by unit and by device, as its startd
// would: whether a request fits, and on which devices. A stream request gets its CPU time
// beside that of batch.
//
// A machine that reclaims also advertises what its tasks are not expected to use (Borg
// §5.5). Production is placed by limits; batch and free are placed by usage estimates,
// and what they get beyond the free resources they may have to give back. See
// machine_reclaim.go.
//
// # Limits
//
// A unit counts against the licences that its request names, and against the run limits
// of its user and its queue. If a limit is reached, the unit waits and does not block
// those behind it. A unit that takes licences never waits in a node queue.
//
// # Gangs and reservations
//
// A gang is placed whole or not at all. Its units may ask for different resources (see
// gang_parts.go) and may need a machine each. A request that finds no room gets a
// backfill reservation from the earliest time at which it fits (see [BackfillSettings]).
// Advance reservations and drains reserve room in the same way. Beside a reservation,
// other units get only what stays free for as long as they run (package timeline).
//
// The machines of a gang may need a value of an attribute in common: see
// gang_placement_set.go. A unit, of a gang or not, may need its machine exclusively and
// then takes all of it: see place_exclusive.go.
//
// # Preemption
//
// A unit that finds no room when its turn comes may preempt claims of lower bands
// ([PreemptionPolicy]): see preempt.go. A gang preempts as a whole or not at all: see
// preempt_gang.go.
//
// # Node queues
//
// When everything that can start has been placed, batch units that found no room get
// places in the queues of resource units, in the same order, the shortest predicted wait
// first (HRM §4.2).
//
// # Performance
//
// Requirements of both sides and Rank are not evaluated machine by machine: the ads of
// the machines are in a [classad.Table], for which a request is compiled once. Asking all
// machines costs a few nanoseconds each; a machine that has changed is written into the
// columns of the table.
//
// The state of the machines is retained from cycle to cycle (see [machineTable]). Only
// machines with a new ad or new pending grants are reset. A request that found no machine
// in the last cycle is tried on these machines only (see [noFitCache]). So the cost of a
// cycle is proportional to what has changed.
//
// Each request has a heap of candidates, about as many as it needs (see [candidateHeap]).
// When a unit is placed, its machine is appended to a log, and each heap reads the new
// part of the log before it returns its best candidate. So the best candidate is always
// exact.
//
// 2026-11-22: relaxed randomisation (Borg §3.4), which looks at machines in a random
// order until there are enough feasible ones, was tried and refused. From scratch it took
// 61 ms in place of 124 ms with 10,000 machines and 100 classes, and 1.5 s in place of
// 3.6 s with 100,000 and 1,000. After one change it took the same 40 µs and 0.3 ms,
// because few machines are looked at then anyway. With it the best Rank would not always
// win, and the naive matcher could not say what is right; the gain is two seconds when a
// new leader begins.
//
// 2026-11-24: explanations (explain_*.go) remain in this package. Matcher.Plan calls
// them, and they read the same arrays by machine as placement does. A package of their
// own would need a view of the cycle with some forty accessors, or a copy of the arrays.
package match

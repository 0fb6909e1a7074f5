// Package blackhole finds machines on which nothing succeeds, and tasks and machines that
// keep failing together.
//
// # Black holes
//
// A broken machine that ends every task at once is free again at once, so it attracts all
// waiting tasks. Such a machine is drained, with the reason. That needs within
// [OutcomeWindow] at least [MinFailures] attempts that ended there within [QuickRuntime]
// of their start. They must be of at least [MinJobs] jobs, or maxEventsPerJob each of two
// jobs; of two owners; and of two submit nodes if there are two. They must also be most
// of what ended there. A failure counts if the machine reports it as its own fault,
// unless others do so too, or if the same job succeeds on other machines. So a user with
// broken jobs drains nothing, however many there are.
//
// Which jobs fail where is reported by the submit node. A user can let a program fail on
// one machine alone, and a submit node can report anything. So the failures of one owner,
// or of one submit node if there are several, have effects for that one only: the owner's
// or the node's jobs avoid the machine for a while ([MachineAvoidance]). Nor does the
// amount of reports matter. Of a job the last maxEventsPerJob outcomes on a machine
// count. When maxEventsPerMachine are stored, the oldest one of the submitter with the
// most is dropped.
//
// A pilot, a machine that a user has brought, runs tasks of this user alone. So the
// failures of its owner are enough, also those of one job, if they count as above. Its
// provisioner ends the allocation, and gets no more pilots on that host for a day.
//
// At most one machine in [DrainFraction] of a pool is drained automatically, at least
// one, and never the last: if a whole pool fails, the cause is elsewhere. Pilots do not
// count in that.
//
//	         too many failures            its time is over        enough successes
//	trusted ──────────────────▶ drained ──────────────────▶ on trial ─────────────▶ trusted
//	                               ▲                            │
//	                               └────────────────────────────┘
//	                                  failures again: for twice as long
//
// On trial a machine gets [TrialTasks] tasks at a time. If an administrator removes the
// drain, the machine is trusted at once ([Detector.ClearMachine]).
//
// # Pairs
//
// A task that has failed [roost.PairFailures] times on the same machine avoids it for a
// while, which doubles each time (Borg §4: a task is not placed again on a machine where
// it crashed).
//
// Times are arguments. Decisions are written to the log; the counts are not replicated. A
// new leader counts anew, so a broken machine fails a few more tasks before it is
// drained, or a task fails a few more times before it avoids a machine. That is within
// the rules, and earlier decisions remain. An entry for every failed attempt would cost
// the log more, and most when a whole pool fails.
package blackhole

import "time"

// The rules.
const (
	OutcomeWindow    = 10 * time.Minute // how far back failures count
	QuickRuntime     = time.Minute      // longer attempts are not failures of a black hole
	MinFailures      = 5
	MinJobs          = 3
	DrainFraction    = 10 // of this many machines one may be drained automatically
	MinDrainDuration = 15 * time.Minute
	MaxDrainDuration = 4 * time.Hour
	TrialTasks       = 2 // tasks at once
	TrialSuccesses   = 3 // successes that end a trial
	TrialFailures    = 2 // failures that end a trial

	maxEventsPerMachine = 64      // outcomes that are stored
	maxEventsPerJob     = 4       // of those, succeeded and failed ones of one job
	maxFailurePairs     = 100_000 // pairs of task and machine that are counted
)

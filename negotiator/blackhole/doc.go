// Package suspect finds out who spoils the work: machines on which nothing succeeds, and
// tasks and machines that keep failing together.
//
// # Black holes
//
// A broken machine that ends every task at once is free again at once, and draws all that
// waits into it. Such a machine is drained, with the reason, when within [OutcomeWindow]
// at least [MinFailures] attempts ended there within [QuickRuntime] of their start, of at
// least [MinJobs] jobs, or maxEventsPerJob of each of two, of two owners, and of two
// submit nodes where there are two, and they are most of what ended there. A failure
// counts when the machine reports it as its own fault, unless others do so too, or when
// the same job goes well on other machines: whoever submits broken jobs drains nothing,
// however many there are.
//
// Who fails, and where, is a claim of the submit node: a user can have a program fail on
// one machine alone, and a submit node can say what it likes. So what one owner has met
// with, or one submit node where there are several, has effect for that one alone: his
// jobs, or those of the node, avoid the machine for a while ([MachineAvoidance]). Nor
// does it matter how much one of them tells: of a job the last maxEventsPerJob outcomes
// on a machine count, and when maxEventsPerMachine are remembered the oldest goes of the
// submitter who has most.
//
// Of a pool at most one machine in [DrainFraction] is drained by itself, one at least,
// and never the last: a whole pool that fails has another cause.
//
//	         too many failures            its time is over            enough went well
//	trusted ──────────────────▶ drained ──────────────────▶ on trial ──────────────────▶ trusted
//	                               ▲                            │
//	                               └────────────────────────────┘  failures again: for twice as long
//
// On trial a machine is given [TrialTasks] tasks at a time. An administrator who takes
// the drain back trusts it at once ([Detector.ClearMachine]).
//
// # Pairs
//
// A task that has failed [roost.PairFailures] times on the same machine is kept from it
// for a while, which doubles each time (Borg §4: a task is not put again with a machine
// where it crashed).
//
// Times come as arguments. What follows from the counts is for the log; the counts
// themselves are not replicated. A new leader counts anew, which costs a few more
// failures on a broken machine before it is drained, or of a task before it is kept from
// one: no more than the rules allow anywhere, and what was decided stands. An entry for
// every attempt that fails would cost the log more, and most when a whole pool fails.
package blackhole

import "time"

// The rules.
const (
	OutcomeWindow    = 10 * time.Minute // how far back failures count
	QuickRuntime     = time.Minute      // an attempt that ran longer has not been swallowed
	MinFailures      = 5
	MinJobs          = 3
	DrainFraction    = 10 // of so many machines one may be drained by itself
	MinDrainDuration = 15 * time.Minute
	MaxDrainDuration = 4 * time.Hour
	TrialTasks       = 2 // at once
	TrialSuccesses   = 3 // so many have to go well
	TrialFailures    = 2 // so many failures end it

	maxEventsPerMachine = 64      // events that are remembered
	maxEventsPerJob     = 4       // of those, good ones and bad ones of one job
	maxFailurePairs     = 100_000 // tasks and machines that are counted
)

// Package owner decides when a machine is lent, and how those that run on it go when its
// owner wants it back.
//
// It is HTCondor's policy of a machine (manual, "Policy Configuration for Execution
// Points") in one pure core: signs of life come in, orders go out. A policy is a set of
// ClassAd expressions over the machine (MY) and the job (TARGET); presets have names, and
// the owner's own file wins over all of them.
//
// The machine as a whole:
//
//	          START holds                    a claim
//	Owner ──────────────────▶ Unclaimed ────────────────▶ Claimed ──all of them leave──▶ Preempting
//	  ▲  ◀──────────────────    ▲  ▲                      │  ▲  │                          │  │  │
//	  │     START does not      │  └──the last is gone────┘  └──┼──────another claim───────┘  │  │
//	  └─────────────────────────┼───the last is gone────────────┘                             │  │
//	                            └─────────────────────────────────────────────────────────────┘  │
//	                                                           Owner ◀── the last is gone ───────┘
//
// Each claim on it:
//
//	         a task starts
//	Idle ────────────────────▶ Busy ──PREEMPT──▶ Retiring ──its time is over─┐
//	 │ ▲ ◀───it ended─────────  │ ▲                │  ▲                      │
//	 │ │                SUSPEND│ │CONTINUE        │  │                      ▼
//	 │ └──it ended────────────  ▼ │       SUSPEND  │                      Vacating ──KILL, or too slow──▶ Killing
//	 │                       Suspended ◀───────────┘                         ▲
//	 │                          └──────────PREEMPT───────────────────────────┤
//	 └───────────────────────────────────PREEMPT─────────────────────────────┘
//
// # The ladder
//
// A task whose owner's machine is wanted goes down step by step, each one dearer for it
// and worth more to the owner: it stands still at once; its GPUs are taken after some
// seconds, as a frozen process keeps their memory; it gives memory back, at once where
// that is short; it leaves with a checkpoint; it is killed.
//
// # Message is on the owner's side
//
// Everything that is not known. A guard that is silent, a pause, an owner's file that
// cannot be read and a machine about to sleep stop all tasks, whatever the policy says.
// START and CONTINUE must be true to hold, SUSPEND must be false not to; PREEMPT and
// KILL, which cost work, must be true, too.
//
// # Time
//
// Instants are of CLOCK_BOOTTIME; the clock on the wall tells only hours, and what
// expressions ask of time(). The unix seconds in the ad are counted back from that clock
// as it stands, so that time() - EnteredCurrentActivity is a duration even after it was
// set back. What a machine sleeps through does not count for the times of the ladder, and
// who wakes it has touched it.
//
// Whether a machine is in service at all is not decided here: a drain is the
// negotiator's, which gives nothing to the machine, and what runs may end.
package policy

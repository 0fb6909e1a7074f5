// Package owner implements the owner policy of a machine. It decides when the machine is
// available to the pool, and how its tasks are suspended and evicted when the owner needs
// it.
//
// It is HTCondor's machine policy (manual, "Policy Configuration for Execution Points")
// as a pure core: observations come in, effects go out. A policy is a set of ClassAd
// expressions over the machine (MY) and the job (TARGET). There are presets with names,
// and the owner's file overrides all of them.
//
// The machine as a whole:
//
//	          START holds                    a claim
//	Owner ──────────────────▶ Unclaimed ────────────────▶ Claimed ──all being vacated──▶ Preempting
//	  ▲  ◀──────────────────    ▲  ▲                      │  ▲  │                          │  │  │
//	  │     START does not      │  └─last claim has ended─┘  └──┼──────another claim───────┘  │  │
//	  └─────────────────────────┼───last claim has ended────────┘                             │  │
//	                            └─────────────────────────────────────────────────────────────┘  │
//	                                                           Owner ◀─last claim has ended──────┘
//
// Each claim on it:
//
//	         a task starts
//	Idle ────────────────────▶ Busy ──PREEMPT──▶ Retiring ──retirement over──┐
//	 │ ▲ ◀───it ended─────────  │ ▲                │  ▲                      │
//	 │ │                SUSPEND│ │CONTINUE        │  │                      ▼
//	 │ └──it ended────────────  ▼ │       SUSPEND  │                      Vacating ──KILL, or timeout───▶ Killing
//	 │                       Suspended ◀───────────┘                         ▲
//	 │                          └──────────PREEMPT───────────────────────────┤
//	 └───────────────────────────────────PREEMPT─────────────────────────────┘
//
// # The steps
//
// When the owner needs the machine a task passes through several steps, each of which
// costs the task more and gives the owner more. It is frozen at once. Its GPUs are taken
// after some seconds, as a frozen process keeps their memory. It returns memory, at once
// if memory is short. It is vacated with a checkpoint. Finally it is killed.
//
// # In doubt the owner wins
//
// All unknown states stop all tasks, whatever the policy says: a silent guard, a pause,
// an unreadable owner's file, and a machine about to sleep. START and CONTINUE must be
// true to hold, and SUSPEND must be false not to hold; PREEMPT and KILL, which cost work,
// must be true.
//
// # Time
//
// Boot times are readings of CLOCK_BOOTTIME; the wall clock is used only for hours and
// for time() in expressions. The unix seconds in the ad are computed backwards from the
// current wall clock, so that time() - EnteredCurrentActivity is a duration even after
// that clock was set back. Time asleep does not count for the steps, and waking the
// machine counts as input.
//
// This package does not decide whether a machine is in service: with a drain the
// negotiator assigns nothing to the machine, and running tasks may end.
package policy

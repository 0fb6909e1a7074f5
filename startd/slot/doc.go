// Package slot keeps the books of one machine: what it has, who leases which part of it,
// and which attempt runs on each lease.
//
// A machine is cut into resource units (RUs, package gpu). A claim is a schedd's lease on
// a part of them, and runs one attempt after the other. What is leased never exceeds what
// there is (promise P5): resources are taken before anything is promised, and go back
// only when no process of the claim can be alive. The life of a claim:
//
//	       Decide
//	         │ carved, or in the queue of a unit; it is being written down
//	         ▼
//	      Making ──could not──▶ gone
//	         │ ClaimCreated: the schedd is answered
//	         ├──────────── holds nothing ─▶ Waiting ◀──────────┐
//	         ▼                                 │ its turn, and  │
//	┌──▶   Idle ──release, lease, drain──▶ gone│ its resources  │
//	│        │ Activate                        │ are free       │
//	│        ▼                                 │                │
//	│     Busy ◀── with an attempt ────────────┤                │
//	│     Idle ◀── without ────────────────────┘                │
//	│                                                           │
//	│     Busy ──VacateAttempt, lease, release, drain──▶ Vacating      │
//	│        │ Ended                                  │ Ended   │
//	│        ▼                                        │         │
//	│     Exited ◀────────────────────────────────────┘         │
//	│        │ Acknowledge                                      │
//	└────────┼──lease over, released, draining──▶ gone          │
//	         └──has passed its resources on─────────────────────┘
//
// # Queues
//
// Each unit has two queues that are stacked (HRM §3.3). Stream claims do not wait: their
// processor time may overlap that of batch claims. Batch claims may be accepted waiting,
// for a unit that they would fit into alone, and are carved strictly in turn. An attempt
// may wait with its claim. When one ends and somebody in the unit's queue has something
// to run, its claim passes its resources on and goes to the end of the queue: so the next
// task starts the moment the last ends, and not a round trip to the schedd later, and
// nobody who uses a claim again and again keeps others waiting.
//
// None wait unless the node file says so: what a claim that waits here is for starts
// nowhere else until its schedd takes it away.
//
// # Reclaimed room
//
// Tasks ask for more than they use. Where the node file says so, what they leave is lent
// (Borg §5.5, package reclaim): the books keep for each unit what is free by limits, and
// the room that is left by reservations (package gpu). Production takes only what is
// free. Batch and free work is given room, and what it gets beyond what is free is
// reclaimed: nothing of it is its own. So P5, for memory, is two promises:
//
//	Σ limits of the claims that are not reclaimed  <= capacity     always
//	Σ reservations of all claims                   <= capacity     when a claim is given;
//	                                                               until those that have to go are gone
//
// A reservation that jumps up, or production that takes what is free while batch work is
// in it, breaks the second: then as many claims in reclaimed room are told to go as it
// takes, the lowest band and the youngest first, and never production. Of processor time
// they have what others leave of it, and go when that was too little for too long. When
// something falls free, those in reclaimed room have it to themselves, the oldest first.
//
// # What is lent
//
// The owner of the machine may lend less than there is (SetOwnerLimits). The units are as
// large as he says, and while more is in use, no larger than that; whoever has what is
// beyond goes, in the order of those in reclaimed room. Nobody else is given what they
// leave.
//
// # Fences
//
// A schedd that opens another session while its claim is made sees it in the welcome and
// may use it at once: from Creating to Busy.
//
// A claim whose lease is over never lives again. If its attempt has ended and nobody has
// recorded that yet, its resources are free for others but the news is kept for a day,
// for a schedd that was away for long: hours of work may be in it.
//
// Three fences keep old news out. Of a grant: an epoch below the highest one seen is a
// deposed negotiator's, and a grant is good for one claim. Of a session: whoever speaks
// on one that a newer session of the same schedd has ended is not heard. Of an attempt:
// its number must be higher than the last that this machine has seen of the task.
//
// The package is pure: the time is an argument, in nanoseconds of CLOCK_BOOTTIME, and
// what is to be done comes out as effects. One goroutine calls a ClaimTable; after each
// batch of calls it asks Todo, does what that says, and tells what came of it.
package slot

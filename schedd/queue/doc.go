// Package queue is the jobs, tasks and attempts of one schedd: what was submitted, where
// each task stands, which of them could start now. It is pure. What users and machines
// ask is first decided (SubmitJobs, HoldTasks, AssignNext, RecordEnded, …): the answer is
// events, or an error, and nothing changes. Apply folds an event into the state, in the
// running schedd and in the replay of its log alike. What follows from the state is read
// from sets of what has changed (TakeDirtyRequests, TakeVacates, Followups, TakeFinal),
// so that the cost is that of the change and not of the queue.
//
// The life of a task:
//
//	                     Unblocked                 Assigned              Started
//	Submitted ─▶ Blocked ──────────▶ OnlyIdle ────────────────▶ Starting ─────────────▶ Running
//	                │ ▲               │ ▲ ▲                     │                      │
//	           Held │ │ Released Held │ │ │ Lost; Ended by a     └──────────┬───────────┘
//	                ▼ │               ▼ │ │ machine's doing, or with        │ Ended
//	               Held ◀─────────────Held └── retries left ◀──────────────┼──────▶ Completed
//	                                   ▲     a hold was asked meanwhile     │
//	                                   └────────────────────────────────────┤
//	Dropped, from any state without a live attempt ─▶ Removed ◀─────────────┘ a removal was asked meanwhile
//
// Retried makes OnlyIdle of Completed with a failure, and of Removed. Suspended and
// Resumed go between Running and Suspended, which ends as Running does. What of a task's
// work is kept in checkpoints, checkpoint.go says.
//
// Attempts are numbered from 1 and only the last may be live. An attempt's end is
// believed once, and only for the present number (P3, P4).
package queue

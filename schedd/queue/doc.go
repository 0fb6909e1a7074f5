// Package queue has the jobs, tasks and attempts of one schedd: what was submitted, the
// state of each task, and which tasks could start now. It is pure.
//
// What users and machines ask for is first decided (SubmitJobs, HoldTasks, AssignNext,
// RecordEnded, …): the answer is events or an error, and nothing changes. Apply folds an
// event into the state, in the running schedd and in the replay of its log. What follows
// from the state is read from sets of what has changed (TakeDirtyRequests, TakeVacates,
// Followups, TakeFinal), so that the cost is that of the change and not of the queue.
//
// The life of a task:
//
//	                Unblocked              Assigned              Started
//	Submitted ─▶ Blocked ─────────▶ Idle ─────────────▶ Starting ─────────▶ Running
//	               │ ▲              │ ▲ ▲                  │                   │
//	          Held │ │ Released Held│ │ │ Lost; Ended by   └─────────┬─────────┘
//	               ▼ │              ▼ │ │ a machine, or with         │ Ended
//	              Held ◀───────────Held └─ retries left ◀────────────┼─▶ Completed
//	                                ▲                                │
//	                                └────────────────────────────────┤ a hold was asked
//	                                                                 │
//	Dropped, without a live attempt ─▶ Removed ◀─────────────────────┘ a removal was
//
// Retried makes Idle of Completed with a failure, and of Removed. Suspended and Resumed
// go between Running and Suspended, which ends as Running does. checkpoint.go says what
// of a task's work is in checkpoints.
//
// Attempts are numbered from 1 and only the last may be live. The end of an attempt is
// believed once, and only for the present number (P3, P4).
//
// The ads of jobs are read by package jobad, and the form of events and snapshots on disk
// is in package eventlog.
package queue

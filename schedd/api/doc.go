// Package api is what users and commands call of a schedd: submission, actions on jobs,
// lists, watches, explanations, logs, shells and terminals, logins, and questions that
// are passed on to collectors and negotiators.
//
// Service answers the calls. Each call runs in a goroutine of gRPC's, and goes to the
// loop (Loop) for what belongs to it: a function runs in one turn, and an answer that
// tells how things are waits until all that the function saw is on disk:
//
//	call ──CallLoop──▶ loop: jobActions decides, jobView reads ──▶ events ──▶ disk
//	  ▲                                                                        │
//	  └──────────────────────────────── answer ◀───────────────────────────────┘
//
// jobActions decides what a call changes; jobView tells how jobs are, and has the watches
// and what running tasks use. Both are called in the loop only. Lists are read from
// JobTable, a copy that the loop brings up to date when somebody asks. listQuery is one
// query under way, over the queue, the table and the history.
package api

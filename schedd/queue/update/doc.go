// Package update decides how the tasks of a service go from one revision of their job to
// another: which task is replaced next, when to wait, and when to go back. It is pure:
// the queue hands in what it knows of the tasks and the time, and carries out what
// [Decide] returns.
//
// The naive way replaces a task after another and waits in between. It forgets that a
// drain, a health check or a lost machine acts meanwhile, so that two causes together
// take down more than either may. Here every planned cause asks one [Budget] of its job.
//
// An update is in one state:
//
//	rolling -> (paused | waiting-pulse | waiting-promote) -> rolling -> done -> closed
//	   |  failure budget or progress spent
//	   v
//	undoing <-> undo-paused
//	   |
//	   v
//	undone -> closed      any active -> aborted (stays mixed)      disruptions spent -> partial
//
// A task goes
//
//	old -> stopping -> starting -> unready -> settling -> new
//
// and is failed when it ended by itself, or was not ready in time. With surge, tasks
// beyond the count of the job become ready first and make room in the budget.
package update

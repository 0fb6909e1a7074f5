// Package schedd is the daemon that owns the jobs of one submit node: it takes them from
// users over a unix socket, keeps them on disk, finds machines for their tasks, runs them
// there, and brings their output back.
//
// Its pure cores are the queue (jobs, tasks, attempts) and the dispatcher (claims,
// sessions, leases). One goroutine, the loop, owns both: users' calls, the negotiator's
// grants, the startds' news and the ends of file transfers come to it as messages, a turn
// at a time. What a turn decides is gathered into a batch; the committer forces the batch
// to disk and only then lets its effects out: answers to users, activations and
// acknowledgements to startds. While the disk works the loop goes on and fills the next
// batch, so that fsyncs are shared by all that happens meanwhile.
//
//	users ─┐                                     ┌─▶ answers
//	negotiator ─┼─▶ loop: queue + dispatcher ─▶ batch ─▶ log (fsync) ─┼─▶ startds
//	startds ────┤                                     └─▶ transfers ─┐
//	transfers ──┘◀───────────────────────────────────────────────────┘
package schedd

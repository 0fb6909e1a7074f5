// Package schedd is the daemon that owns the jobs of one submit node. It accepts them
// from users over a unix socket, stores them on disk, finds machines for their tasks,
// runs the tasks there, and brings their output back.
//
// Its pure cores are the queue (jobs, tasks, attempts) and the dispatcher (claims,
// sessions, leases). One goroutine, the loop, owns both. Calls of users, grants of the
// leader, messages of startds and the ends of file transfers come to it as events, a turn
// at a time. A turn's decisions go into a batch; the committer forces the batch to disk
// and only then lets its effects out: answers to users, activations and acknowledgements
// to startds. While the disk works the loop goes on and fills the next batch, so that
// events share fsyncs.
//
//	users ─┐                                     ┌─▶ answers
//	negotiator ─┼─▶ loop: queue + dispatcher ─▶ batch ─▶ log (fsync) ─┼─▶ startds
//	startds ────┤                                     └─▶ transfers ─┐
//	transfers ──┘◀───────────────────────────────────────────────────┘
//
// Here are the loop, its committer, the sessions with startds, and the archive. The parts
// around them are packages below: api (calls of users), negotiation (the leader),
// transfer (files), peers (other schedds), admission (queues of the pool). Each names
// what it needs of the loop in an interface of its own, which loopAdapter implements.
// LoopCore is the loop without goroutines, network, disk and clocks, for the simulator.
package schedd

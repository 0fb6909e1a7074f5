// Package replica keeps one state machine the same on one, three or five central
// managers: a replicated log of opaque entries, applied by every replica in the same
// order. It is the hand around hashicorp/raft (Ongaro and Ousterhout, "In Search of an
// Understandable Consensus Algorithm", 2014; pre-vote and membership changes of single
// servers as in Ongaro's thesis, §9.6 and §4.1), whose log lies in hashicorp/raft-wal and
// whose term and vote lie in a file of internal/boltfile beside it.
//
//	           no leader known                 elected, and all
//	┌───────┐  asks its peers  ┌──────────┐    earlier entries applied   ┌────────┐
//	│ empty │ ───────────────▶ │ follower │ ───────────────────────────▶ │ leader │
//	└───────┘  bootstrap, or   └──────────┘ ◀─────────────────────────── └────────┘
//	           taken in as a         ▲        no quorum for a lease,
//	           learner               │        or a newer term
//	                                 └── a learner that has caught up gets its vote
//
// Who is who. A replica has an identity: an id made at random when its directory is
// empty, and the id of the cell that it belongs to. Every stream between two replicas
// says from which id to which id it goes and of which cell it is, and what is meant for
// another is refused. So a replica whose disk was wiped is somebody new: it cannot vote a
// second time in a term in which its former self has voted. It asks the others to be
// taken in at its address; the leader looks there itself, strikes the old id and adds the
// new one as a learner.
//
// Damage. Every entry, snapshot, term and vote has a checksum, and a mark beside the log
// has the index of its last entry, so that an end that was acknowledged is told from a
// write that was cut short. A replica of several whose disk is damaged waits for a
// leader, sets what it has aside, and is somebody new; one that is alone says what is
// missing and ends: [Repair].
//
// The first start. A replica that has no peers bootstraps at once. Of several the one
// with the lowest address does, when it has reached all of them and all are empty and
// name the same peers; where one is not empty the others wait to be taken in.
//
// Where it is served. Raft's connections are streams of gRPC on the negotiator's own
// listeners, so there is one port, one TLS and one table of roles. Each is a connection
// of its own: one that the network has swallowed is given up with all that waits in it.
package replica

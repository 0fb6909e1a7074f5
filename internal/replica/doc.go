// Package replica replicates one state machine on one, three or five central managers:
// every replica applies a replicated log of opaque entries in the same order. It is an
// adapter of hashicorp/raft (Ongaro and Ousterhout, "In Search of an Understandable
// Consensus Algorithm", 2014; pre-vote and membership changes of single servers as in
// Ongaro's thesis, §9.6 and §4.1). Its log is in hashicorp/raft-wal, and its term and
// vote are in a file of internal/boltfile.
//
//	           no leader known                 elected, and all
//	┌───────┐  asks its peers  ┌──────────┐    earlier entries applied   ┌────────┐
//	│ empty │ ───────────────▶ │ follower │ ───────────────────────────▶ │ leader │
//	└───────┘  bootstrap, or   └──────────┘ ◀─────────────────────────── └────────┘
//	           added as a            ▲        no quorum for a lease,
//	           learner               │        or a newer term
//	                                 └── a learner that has caught up becomes a voter
//
// Identity. A replica has an id, made at random when its directory is empty, and the id
// of its cell. Every stream between two replicas names both replica ids and the cell, and
// a stream for another replica is refused. So a replica whose disk was wiped is a new
// replica: it cannot vote a second time in a term in which it has already voted. It asks
// the others to be added at its address; the leader checks that address, removes the old
// id and adds the new one as a learner.
//
// Damage. Every entry, snapshot, term and vote has a checksum, and a mark beside the log
// has the index of its last entry, so that a lost end is distinguished from an incomplete
// write. A replica of several whose disk is damaged waits for a leader, renames its data,
// and starts as a new replica. One that is alone reports what is missing and ends:
// [Repair].
//
// The first start. A replica without peers bootstraps at once. Of several, the one with
// the lowest address does, when it has reached all of them and all are empty and name the
// same peers; if one is not empty the others wait to be added.
//
// Transport. Raft's connections are gRPC streams on the negotiator's own listeners, so
// there is one port, one TLS configuration and one access table. Each is a connection of
// its own: if the network drops its packets, the connection is closed with everything
// that waits in it.
package replica

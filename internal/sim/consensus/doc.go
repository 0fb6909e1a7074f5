// Package consensus is the replicated log of a simulated pool. It replaces
// internal/replica, whose library has its own goroutines, clocks and disks. It is Raft
// (Ongaro and Ousterhout, In Search of an Understandable Consensus Algorithm, USENIX ATC
// 2014, figure 2), with three additions that internal/replica relies on: a leader that no
// majority answers for a while steps down; a leader reports that it leads only when all
// entries of earlier leaders are applied; and it can ask a majority to confirm that it
// still leads.
//
//	            election timeout            votes of a majority
//	┌──────────┐ ──────────────▶ ┌───────────┐ ──────────▶ ┌────────┐
//	│ follower │                 │ candidate │             │ leader │
//	└──────────┘ ◀────────────── └───────────┘             └────────┘
//	      ▲      a higher term, or a leader                    │
//	      └────────── a higher term, or no majority ───────────┘
//
// A replica that finds its log damaged drops it. It has no vote until it has learned from
// a leader everything that it may have acknowledged before. internal/replica does
// otherwise: there the replica rejoins under a new id. Here the members never change, and
// term and vote survive the damage.
//
// The package is pure: its caller passes the time and the messages that arrive, and takes
// out the messages to send and the disk to write. Messages wait for the disk: a replica
// that sends a vote or an acknowledgement before it is written could give another one
// after a crash.
package consensus

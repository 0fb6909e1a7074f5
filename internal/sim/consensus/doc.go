// Package consensus is a replicated log for a simulated pool, in the place of
// internal/replica, whose library has goroutines, clocks and disks of its own. It is Raft
// (Ongaro and Ousterhout, In Search of an Understandable Consensus Algorithm, USENIX ATC
// 2014, figure 2), with what internal/replica relies on: a leader that has not heard of a
// majority for a while steps down, it says that it leads when all entries of earlier
// leaders are applied, and it can have a majority confirm that it still does.
//
//	            election timeout            votes of a majority
//	┌──────────┐ ──────────────▶ ┌───────────┐ ──────────▶ ┌────────┐
//	│ follower │                 │ candidate │             │ leader │
//	└──────────┘ ◀────────────── └───────────┘             └────────┘
//	      ▲      a higher term, or a leader                    │
//	      └────────── a higher term, or no majority ───────────┘
//
// A replica that finds its log damaged drops it, and has no vote until it has learned
// from a leader all that it may have acknowledged before. The real one becomes somebody
// new, whom the leader takes in; here who takes part stays as it is, and term and vote
// outlive the damage.
//
// The package is pure: whoever drives a Replica gives it the time and what it is told,
// and takes out messages and what is to be written. Messages wait for the disk: a vote or
// an acknowledgement that leaves before it is written could be given twice.
package consensus

// Package starter is the startd's hand on its starters: it spawns them, finds them again
// after a restart, and tells them what to do. The starter itself, the small program that
// is the parent of a claim's tasks, is package starter; what both say to each other
// is package starter/proto.
//
// There is one starter a claim. It lives in the claim's directory, which only the
// startd's user may enter, and outlives the startd:
//
//	sock          where it listens
//	journal       what it did, written before it says so
//	starter.log   what it said on stderr, in case of trouble
//	root, dev     where it mounts the files and devices of its boxes; nobody else sees them mounted
//
// What an attempt prints lies beside, in a directory of the attempt's own, until
// DiscardAttempt.
//
// A starter runs one task at a time:
//
//	        Start              exit, kill, or launch failure            DiscardAttempt
//	idle ──────────▶ running ──────────────────────────────▶ ended ──────────▶ idle
//
// It ends its task when walltime or lease run out, whether or not a startd is there, and
// itself when the lease runs out without a task. Told to, it freezes its task and lets it
// go on.
//
// When it dies, the kernel kills its task's first process (PR_SET_PDEATHSIG). In a box
// that is process 1, with which everything in the box ends; without one, Sweep finds by
// their environment what that process had forked.
package starterclient

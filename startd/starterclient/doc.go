// Package starterclient controls the starters of a startd: it spawns them, reconnects to
// them after a restart, and sends them commands. Package startd/starter is the starter
// itself, the small program that is the parent of a claim's tasks. Package
// startd/starter/proto defines the messages between the two.
//
// There is one starter per claim. It uses the claim's directory, which only the startd's
// user may enter, and outlives the startd:
//
//	sock          its listening socket
//	journal       its actions, recorded before they are reported
//	starter.log   its stderr, in case of errors
//	root, dev     mount points for the files and devices of its sandboxes, in its own mount
//	              namespace
//
// The captured output of an attempt is in a separate directory of the attempt, until
// DiscardAttempt.
//
// A starter runs one task at a time:
//
//	        Start              exit, kill, or launch failure            DiscardAttempt
//	idle ──────────▶ running ──────────────────────────────▶ ended ──────────▶ idle
//
// It ends its task when the walltime or the lease expires, whether or not a startd is
// running, and exits when the lease expires without a task. On command it freezes and
// thaws its task.
//
// When it dies, the kernel kills its task's first process (PR_SET_PDEATHSIG). In a
// sandbox that is process 1, and the whole sandbox dies with it. Otherwise Sweep finds
// the descendants of that process by their environment.
package starterclient

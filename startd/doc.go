// Package startd is the execute daemon: it leases a machine's resources to schedds and
// runs their tasks on them.
//
// One goroutine, the loop, owns the books (package startd/slot). Sessions with schedds,
// and one goroutine for each claim, its hand, feed the loop through a bounded inbox; what
// the books say is to be done goes back into mailboxes, which the loop never waits for:
//
//	schedd ──Session──▶ inbox ─▶ loop: slot.ClaimTable ─▶ mailbox ─▶ hand of a claim ─▶ roost-starter ─▶ the task
//	       ◀──outbox───────────── one goroutine  ◀── inbox ◀── reads output, files ◀── events
//
// The hand of a claim makes its control group (package internal/cgroup), prepares each
// attempt's directories, and has its starter run the task in a box, where the machine can
// (package startd/starter). Beside the loop run the meter, which measures what tasks use;
// the GPUs' watch; the shells in tasks (package startd/shell); and at most one checkpoint
// a task, for which a helper process runs CRIU.
//
// Where the machine has an owner, a guard beside this daemon sees whether he is there
// (package startd/desktop/guard), and startd/desktop/policy decides what that means for tasks, which
// startd/desktop has done to claims. The loop hears the guard before anything else, and
// stops claims without waiting for their hands, which may be busy (holding): a task
// stands still while its user, a checkpoint or the owner wants it to.
//
// Where a task's user may change a path, it is followed with that user's rights and no
// more. Below the startd's directory lie
//
//	claims/<id>/     what a startd must know of a claim after its own death, and what the starter keeps
//	io/<id>/         what the claim's attempts print where it is captured, and their script; in the box /dev/roost
//	scratch/<id>/    the user's own: in the box /tmp, with the scratch directory below it as /tmp/job
//	checkpoints/     images until the schedd has them, and whether CRIU works with this kernel
//	reliability      how often the machine failed, for the interval of checkpoints
//	today            what was given since midnight, and what it cost the owner
//
// In a claim's directory lie the claim file, written before the schedd is told of the
// claim, and a record of what was started last. The starters live on when the startd is
// killed, and a new one finds them. None of it is forced to disk: it need outlive the
// startd, not the machine, and after a boot every task from before is gone.
package startd

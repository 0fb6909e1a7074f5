// Package startd is the execute daemon: it leases a machine's resources to schedds and
// runs their tasks on them.
//
// One goroutine, the loop, owns the claim table (package startd/slot). Sessions with
// schedds, and one goroutine for each claim, its runner, feed the loop through a bounded
// inbox. What the table says is to be done goes into queues, which the loop never waits
// for:
//
//	schedd ──Session──▶ inbox ─▶ loop: slot.ClaimTable ─▶ queue ─▶ claim.Runner ─▶ roost-starter ─▶ the task
//	       ◀──queue────────────── one goroutine  ◀── inbox ◀── events
//
// Beside the loop run
//
//	startd/claim     the runner of each claim: control group, directories, checkpoints
//	startd/meter     what tasks use, and the end of those that use too much
//	startd/gpuwatch  how the GPUs are, and what tasks use of them
//	startd/streams   files, output and shells, to and from tasks
//
// The loop keeps a few spare starters for claims to come (spareStarters): making a
// starter with its control groups and the root of its sandboxes takes longer than all
// else between a claim and its first task.
//
// Where the machine has an owner, a guard beside this daemon sees whether the owner is
// there (package startd/desktop/guard), and startd/desktop/policy decides what that means
// for tasks, which startd/desktop has done to claims. The loop hears the guard before
// anything else, and suspends claims without waiting for their runners, which may be busy
// (claim.OwnerSuspension): a task is suspended while its user, a checkpoint or the owner
// wants it to be.
//
// Where a task's user may change a path, it is followed with that user's rights and no
// more. Below the startd's directory lie
//
//	claims/<id>/   what a startd must know of a claim after its own death
//	io/<id>/       captured output of the claim's attempts, and their script
//	scratch/<id>/  the user's own: in the sandbox /tmp, with the scratch directory in it
//	checkpoints/   images until the schedd has them, and whether CRIU works here
//	reliability    how often the machine failed, for the interval of checkpoints
//	today          what was given since midnight, and what it cost the owner
//
// In a sandbox io/<id> is /dev/roost, and the scratch directory /tmp/job.
//
// In a claim's directory lie the claim file, written before the schedd is told of the
// claim, and a record of what was started last. The starters live on when the startd is
// killed, and a new one finds them. None of it is forced to disk: it need outlive the
// startd, not the machine, and after a boot every task from before is gone.
package startd

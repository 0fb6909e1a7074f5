// Package startd is the execute daemon: it leases a machine's resources to schedds and runs their tasks on them.
//
// One goroutine, the loop, owns the books (package startd/slot). Sessions with schedds, and one goroutine for each claim, its hand, feed the loop
// through a bounded inbox; what the books say is to be done goes back into mailboxes, which the loop never waits for:
//
//	schedd ──Session──▶ inbox ─▶ loop: slot.Core ─▶ mailbox ─▶ hand of a claim ─▶ roost-starter ─▶ the task
//	       ◀──outbox───────────── one goroutine  ◀── inbox ◀── reads output, files ◀── events
//
// What a startd must know after its own death lies with the claim, in <dir>/claims/<id>: the claim file, written before the schedd is told of the
// claim; a record of what was started last; and what the starter keeps there. The starters live on when the startd is killed, and a new one
// finds them. It is not forced to disk: it need outlive the startd, not the machine, and after a boot everything from before is gone.
package startd

// Package dispatch keeps the books of a schedd's claims: which parts of which machines it
// holds, what runs on each, and until when each machine believes that. It is pure: what
// happened is told to it, what should be done about it is drained from it as effects, and
// the tasks themselves belong to the queue, which it reaches through the JobQueue
// interface.
//
// The life of a claim:
//
//	        Granted              ClaimAnswered            Assign
//	grant ──────────▶ Requested ──────────────────▶ Idle ──────────────▶ Busy
//	                    │ refused, or no answer   │ ▲                 │ Exited
//	                    ▼                         │ │ Finished        ▼
//	                  (gone) ◀────────────────────┘ └────────── Exited
//	                     nothing is ready for its                (output on
//	                     request, or it is too old               its way back)
//
// The claim of a task that is started again on the same machine is Restarting from the
// end of one attempt to the start of the next (Finished, RestartTask).
//
// A claim may wait for its resources on its machine (wait.go): its first task is put on
// it all the same, and so are those after it when it has passed its resources on to
// another that waited.
//
// A claim survives the loss of the connection while something runs on it: the node comes
// back and says what it has (Connected), or the lease that was last sent to it runs out,
// with drift and the time to kill added, and only then is the attempt lost (DESIGN §5).
package dispatch

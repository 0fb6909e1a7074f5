// Package fault names the instants at which a crash is interesting. In an ordinary build
// Point is empty and costs nothing; built with -tags faults, a process that passes a
// point for which a file of that name lies in $ROOST_FAULT_DIR removes the file and kills
// itself with SIGKILL, so that each file stands for exactly one crash.
package failpoint

// The points. Each durable step has one before and one after it.
const (
	ScheddBeforeAppend      = "schedd.append.before"    // a batch is decided, nothing is written
	ScheddAfterAppend       = "schedd.append.after"     // written in the transaction, not yet committed
	ScheddAfterFsync        = "schedd.fsync.after"      // on disk, nobody was told
	ScheddAfterAnswer       = "schedd.answer.after"     // a client has its answer
	ScheddBeforeClaim       = "schedd.claim.before"     // granted, the startd was not asked yet
	ScheddAfterActivate     = "schedd.activate.after"   // the startd was told to run an attempt
	ScheddAfterOutputCopied = "schedd.output.copied"    // output is in place, completion is not recorded
	ScheddAfterExitRecorded = "schedd.exit.recorded"    // completion is on disk, the startd may not forget yet
	StartdAfterClaim        = "startd.claim.after"      // the claim is on disk, the schedd does not know
	StartdBeforeStarter     = "startd.starter.before"   // about to fork the starter
	StartdAfterStarter      = "startd.starter.after"    // the starter runs
	StartdBeforeExitSent    = "startd.exit.before"      // the starter reported the exit, the schedd does not know
	StarterBeforeFork       = "starter.fork.before"     // about to fork the task
	StarterAfterFork        = "starter.fork.after"      // the task runs, nothing says so yet
	StarterBeforeExitFile   = "starter.exit.before"     // reaped, not yet on disk
	StarterAfterExitFile    = "starter.exit.after"      // on disk, nobody was told
	NegotiatorBeforeGrant   = "negotiator.grant.before" // planned, not sent
	NegotiatorAfterGrant    = "negotiator.grant.after"  // sent, not remembered elsewhere
)

// Names lists every point, for tests that want to hit each.
func Names() []string {
	return []string{
		ScheddBeforeAppend, ScheddAfterAppend, ScheddAfterFsync, ScheddAfterAnswer, ScheddBeforeClaim,
		ScheddAfterActivate,
		ScheddAfterOutputCopied, ScheddAfterExitRecorded, StartdAfterClaim, StartdBeforeStarter, StartdAfterStarter,
		StartdBeforeExitSent,
		StarterBeforeFork, StarterAfterFork, StarterBeforeExitFile, StarterAfterExitFile, NegotiatorBeforeGrant,
		NegotiatorAfterGrant,
	}
}

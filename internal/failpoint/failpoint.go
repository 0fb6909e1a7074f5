// Package failpoint names the instants at which a crash is interesting. In an ordinary
// build Point is empty and costs nothing. Built with -tags faults, a process that passes
// a point whose name is a file in $ROOST_FAULT_DIR removes the file and kills itself with
// SIGKILL, so that each file causes exactly one crash.
package failpoint

// The points. Each durable step has one before and one after it.
const (
	ScheddBeforeAppend      = "schedd.append.before"    // a batch is decided, nothing is written
	ScheddAfterAppend       = "schedd.append.after"     // written, not yet synced
	ScheddAfterFsync        = "schedd.fsync.after"      // on disk, no reply was sent
	ScheddAfterNewSegment   = "schedd.segment.after"    // the log has a new segment for what follows a checkpoint
	ScheddInCheckpoint      = "schedd.checkpoint.in"    // snapshots are written in the transaction, not yet committed
	ScheddAfterCheckpoint   = "schedd.checkpoint.after" // committed, the log is not truncated
	ScheddAfterTruncate     = "schedd.truncate.after"   // the log begins after the checkpoint
	ScheddBeforeCarryOver   = "schedd.carry.before"     // a queue.db of an older format is read, nothing is written
	ScheddInCarryOver       = "schedd.carry.in"         // its log exists, the file is of the older format
	ScheddAfterCarryOver    = "schedd.carry.after"      // the file is of the present format
	ScheddAfterAnswer       = "schedd.answer.after"     // a client has its answer
	ScheddBeforeClaim       = "schedd.claim.before"     // granted, no claim requested of the startd yet
	ScheddAfterActivate     = "schedd.activate.after"   // the startd has received an activation
	ScheddAfterOutputCopied = "schedd.output.copied"    // output is stored, completion is not recorded
	ScheddAfterExitRecorded = "schedd.exit.recorded"    // completion is on disk, the startd still has the attempt
	StartdAfterClaim        = "startd.claim.after"      // the claim is on disk, the schedd does not know
	StartdBeforeStarter     = "startd.starter.before"   // about to fork the starter
	StartdAfterStarter      = "startd.starter.after"    // the starter runs
	StartdBeforeExitSent    = "startd.exit.before"      // the starter reported the exit, the schedd does not know
	StartdInResize          = "startd.resize.in"        // a larger size is on disk, the limits are the old ones
	StartdAfterResize       = "startd.resize.after"     // the limits are the new ones, the schedd does not know
	StarterBeforeFork       = "starter.fork.before"     // about to fork the task
	StarterAfterFork        = "starter.fork.after"      // the task runs, no record of it exists yet
	StarterBeforeExitFile   = "starter.exit.before"     // reaped, not yet on disk
	StarterAfterExitFile    = "starter.exit.after"      // on disk, no report was sent
	NegotiatorBeforeGrant   = "negotiator.grant.before" // the grant is committed and not sent
	NegotiatorAfterGrant    = "negotiator.grant.after"  // the grant is sent
	AccountantBeforeMarks   = "accountant.marks.before" // rows are written, nothing is committed
	AccountantAfterMarks    = "accountant.marks.after"  // names and marks are on disk, no rows
	AccountantAfterMonth    = "accountant.month.after"  // the rows of a month are on disk, not the feed's number
	AccountantAfterNumber   = "accountant.number.after" // all is on disk, the schedd does not know
	AccountantBeforeRoll    = "accountant.roll.before"  // hours are computed, not stored
	AccountantAfterCharge   = "accountant.charge.after" // charges are on disk
	FeedBeforeAppend        = "feed.append.before"      // entries have numbers, nothing is written
	FeedAfterAppend         = "feed.append.after"       // written, not yet synced
	FeedAfterFsync          = "feed.fsync.after"        // on disk, nothing was sent
	FeedAfterTruncate       = "feed.truncate.after"     // what the accountant has stored is removed
	FeedAfterSend           = "feed.send.after"         // entries were sent, the accountant has not answered
)

// FeedNames lists the points of a schedd that an accountant follows.
func FeedNames() []string {
	return []string{FeedBeforeAppend, FeedAfterAppend, FeedAfterFsync, FeedAfterTruncate, FeedAfterSend}
}

// Names lists every point that a running pool passes, for tests that use each of them.
func Names() []string {
	return []string{
		ScheddBeforeAppend, ScheddAfterAppend, ScheddAfterFsync, ScheddAfterNewSegment, ScheddInCheckpoint,
		ScheddAfterCheckpoint, ScheddAfterTruncate, ScheddAfterAnswer, ScheddBeforeClaim, ScheddAfterActivate,
		ScheddAfterOutputCopied, ScheddAfterExitRecorded, StartdAfterClaim, StartdBeforeStarter, StartdAfterStarter,
		StartdBeforeExitSent,
		StarterBeforeFork, StarterAfterFork, StarterBeforeExitFile, StarterAfterExitFile, NegotiatorBeforeGrant,
		NegotiatorAfterGrant,
	}
}

// AccountantNames lists the points of an accountant. A pool without one does not pass
// them.
func AccountantNames() []string {
	return []string{
		AccountantBeforeMarks, AccountantAfterMarks, AccountantAfterMonth, AccountantAfterNumber, AccountantBeforeRoll,
		AccountantAfterCharge,
	}
}

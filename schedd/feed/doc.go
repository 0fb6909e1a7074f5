// Package feed is the accounting feed of a schedd: numbered entries about jobs and
// attempts, for the pool's accountant.
//
// The journal is the truth, and the feed follows from it: which entries there are depends
// only on the events of the queue. So nothing waits for the feed.
//
//	loop        derives entries where it applies events, and hands them over
//	committer   counts the events that are on disk
//	writer      numbers the entries whose events are on disk, and appends them to the log
//	            of the feed, at most a few times in a second
//
// Each record of the log says up to which batch of the journal its entries reach. After a
// crash the schedd replays the journal and derives what the log of the feed lacks. For
// that a checkpoint of the journal removes batches only when the feed has what follows
// from them. Only what is on disk is sent, so that a number never means two things.
//
// The accountant says what it has stored, and the log is cut up to there. If the log
// grows too long, cannot be written, or is damaged, the feed begins anew with a gap. The
// accountant then reads the jobs themselves, those of the queue and those of the history.
// A feed begins with a gap, too. It is kept only where a pool has an accountant: one is
// in the node file, or has ever called.
package feed

// Package notify tells people what they asked to be told of their jobs (POSIX XCU qsub
// -m): by a program that takes mail as sendmail(8) does, and by a hook of the
// administrator's.
//
//	a batch of facts ──▶ Enqueue: a file, on disk before the facts are ──▶ the facts are ──▶ Run: one message a person, or a digest ──▶ the file goes
//
// Whatever is told is told at least once. A schedd that dies between the file and the
// facts tells of what then happens once more, and one that dies between a message and the
// end of its file sends that again; neither goes on for ever, as a file goes when it is
// delivered or three days old. Nothing of this is waited for: who does not take mail fast
// enough gets it later and in fewer pieces, and what is more than the outbox holds is
// dropped with a line in the log.
//
// Programs run with the rights of the job's owner, in an environment made from scratch.
package notify

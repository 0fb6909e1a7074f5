// Package notify delivers the notifications that users requested for their jobs (POSIX
// XCU qsub -m). It uses a program that accepts mail as sendmail(8) does, and a hook of
// the administrator.
//
//	a batch of events
//	  ──▶ Enqueue: a file, on disk before the events
//	  ──▶ the events reach the disk
//	  ──▶ Run: one message per user, or a digest
//	  ──▶ the file is deleted
//
// Delivery is at least once. A schedd that dies between the file and the events repeats
// the notifications of what happens then, and one that dies between a message and the
// deletion of its file sends that message again. Neither repeats for ever, as a file is
// deleted when it is delivered or three days old. Nothing waits for a delivery: a
// recipient whose mail system is slow gets the notifications later and in larger digests.
// When the spool is full, further notifications are dropped and logged.
//
// Programs run with the rights of the job's owner, in an environment that contains
// nothing of the schedd's.
package notify

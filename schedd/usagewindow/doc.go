// Package usagewindow is what running attempts used over the last day, in the windows of
// five minutes that their nodes report. It lives in memory: the nodes repeat the last two
// hours to a schedd that was restarted.
//
// Two things are made of the windows. Commands and pages read those of a task, or the
// sums of a job. And as soon as an hour of an attempt is over, or the attempt is, its
// windows are packed for the accounting feed.
//
//	Add      windows of an attempt that runs; each hour that they complete is packed
//	Remove   the attempt has ended: what is left of it is packed
//
// What nodes say is bounded here: windows lie within two days, follow one another, and
// hold no more than a machine can have.
package usagewindow

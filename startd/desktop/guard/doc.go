// Package guard is the daemon that protects a machine's owner from the tasks. It runs the
// idleness sources (startd/desktop/idle), reads the owner's file, and stores the owner's
// pause. It sends its observations to the startds of the host, and freezes their tasks
// itself if they do not act.
//
//	sources ──▶ observations ──▶ startds ──▶ acknowledged
//	                                │
//	                                └─ no acknowledgement within 100 ms of urgent ones
//	                                      ──▶ the guard freezes the startd's cgroups
//
// The guard is a separate small process with high priority, because its guarantees must
// hold while everything else is stuck: a key press freezes the tasks within 250 ms, and
// "roost pause" works while the startd, the schedd and the pool are down. It only ever
// freezes. The startd thaws tasks, as only the startd knows who else wants them frozen;
// so the observations name the tasks that the guard froze itself.
//
// Root, the user of the daemons, the users that the owner's file names, and every user
// with an active session at a seat of the machine may pause it.
package guard

// Package guard is the daemon that stands between a machine's owner and the tasks on it.
// It owns the sources of idleness (startd/desktop/idle), the owner's file and his pause; it tells
// the startds of the host what it sees, and stops their tasks itself when they do not.
//
//	sources ──▶ signs ──▶ startds ──▶ acted
//	                        │
//	                        └─ nothing heard within 100 ms of urgent signs ──▶ the guard freezes their control groups
//
// It is a process of its own, small and with the right of way, because what it promises
// must hold while everything else is stuck: a key stands tasks still within 250 ms, and
// "roost pause" works with the startd, the schedd and the pool down. It only ever
// freezes. What stands still goes on when the startd says so, for only the startd knows
// who else wants it to stand; so the signs name what the guard froze itself.
//
// Who may pause: root, the user that the daemons run as, those whom the owner's file
// names, and whoever has an active session at a seat of the machine.
package guard

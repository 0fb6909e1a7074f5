// Package faults draws schedules of faults from a seed, and finds the fewest that still
// do harm.
//
// A [Fault] says what happens to which node at what time, and for how long. It is data
// and not code, so a schedule that violates a guarantee can be minimized ([Minimize]),
// replayed, and printed line by line. [DrawSchedule] follows two established practices.
// Each seed has only some of the kinds, and more faults of those, because rare
// combinations are found sooner that way (Groce et al., "Swarm Testing", ISSTA 2012).
// After a time the faults stop, so that what does not recover shows (TigerBeetle's
// simulator).
//
// Network faults are those that a session can meet. Two nodes have a connection, which
// preserves order and loses nothing until it breaks. So no single message is lost: a
// session breaks with everything in transit. A late message comes from a session that a
// newer one has replaced. A duplicate comes from a sender that got no reply.
package faults

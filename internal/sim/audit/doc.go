// Package audit checks a pool against the guarantees of Roost (the design, §5, P1 to P11;
// roost(7)). It knows nothing of how a pool works. It gets, one [Event] after the other,
// the observations of an observer that no part of the pool can be: one with a single
// clock for all machines, who sees all of them at once. An event that contradicts a
// guarantee gives a [Violation]: the guarantee, its sentence, and the related events
// until then.
//
// What counts for a task is what its processes do ([Began], [Ended]), and never what a
// daemon believes of them.
//
// The package is pure. It takes time and memory in proportion to the events.
package audit

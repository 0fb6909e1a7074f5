// Package audit holds what was seen of a pool against what Roost promises (the design,
// §5, P1 to P11; roost(7)). It knows nothing of how a pool works: it is told, one [Event]
// after the other, what an observer sees who has one clock for all machines and looks
// into each of them at once, which no part of the pool can. A promise that is broken
// gives a [Violation]: which, the sentence that was broken, and what was seen of the
// matter until then.
//
// What is taken for true of a task is what its processes do ([Began], [Ended]), and never
// what a daemon believes of them.
//
// The package is pure, and takes time and memory in proportion to what it is told.
package audit

// Package storm draws a pool, what its users do, and faults, all from one seed; has
// package pool play that; and has package audit judge it. If a promise is broken it looks
// for the shortest story: the fewest faults, jobs and nodes, and the shortest times, with
// which the same promise breaks, told in the order of time.
//
// The life of a run:
//
//	0s                              FaultsEnd                                RunEnd
//	│ jobs come, faults happen, each │ no more of either: everything     │
//	│ promise is looked after        │ has to move within a minute (P9), │
//	│ after each event               │ and to end                        │
//
// What is drawn is data ([PoolCase]): it can be cut down, and played again. The same case
// gives the same run, event for event.
package fuzz

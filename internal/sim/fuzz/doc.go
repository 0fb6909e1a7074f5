// Package fuzz draws a pool, its users' actions and faults from one seed. Package pool
// simulates them, and package audit checks the run. If a guarantee is violated, fuzz
// looks for the smallest case that violates the same one: the fewest faults, jobs and
// nodes, and the shortest times. It prints that case in order of time.
//
// The course of a run:
//
//	0s                              FaultsEnd                                RunEnd
//	│ jobs come, faults happen, each │ no more of either: everything     │
//	│ guarantee is checked after     │ has to move within a minute (P9), │
//	│ each event                     │ and to end                        │
//
// A case is data ([PoolCase]), so it can be reduced and replayed. The same case gives the
// same run, event for event.
package fuzz

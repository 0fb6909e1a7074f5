// Package kernel is the clock of a simulation: one heap of events, of which the earliest
// happens next, and of those at one instant the one that was planned first. Time does not
// pass otherwise. It is pure and allocates nothing but what it keeps, so that what a
// simulation costs is what it simulates.
//
// Each event goes into a digest, with its instant, its place and its kind: two runs with
// the same digest have been the same.
package eventloop

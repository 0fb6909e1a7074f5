// Package eventloop is the clock of a simulation: a heap of events, run in order of time,
// and at equal times in the order in which they were planned. Time passes in no other
// way. It is pure, and allocates only what it retains, so a simulation costs what it
// simulates.
//
// Each event goes into a digest, with its time, place and kind. Two runs with the same
// digest were the same.
package eventloop

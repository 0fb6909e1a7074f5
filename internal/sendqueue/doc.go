// Package sendqueue has a queue between goroutines whose sender never waits.
//
// The goroutine that owns a daemon's state puts commands for its workers and messages for
// its peers into such queues, and another goroutine takes them, so no slow reader delays
// the state. Where the sender puts only a few items for each claim, a queue needs no
// limit. With a limit, a peer that reads too slowly loses its session: no message is left
// out in the middle of it.
package sendqueue

// Package sendqueue is a queue between goroutines whose sender never waits.
//
// The goroutine that owns a daemon's state puts commands for its workers and messages
// for its peers into such queues, so that no slow reader holds it up. A queue has no
// bound of its own: its sender puts in only a few items for each state of what they are
// about, such as a claim.
package sendqueue

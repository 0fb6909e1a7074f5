// Package sendqueue is a queue of messages for one peer whose sender never waits.
//
// The loop of the schedd puts messages for startds and for the leader into such queues,
// and the goroutine that owns the stream sends them. A queue may have a limit; a peer
// that reads too slowly for it loses its session, and nothing is left out in the middle
// of one.
package sendqueue

// Package collector is the daemon that knows what exists now: every daemon of the pool
// advertises itself here as a ClassAd with a lease, and negotiators, schedds and commands
// watch and ask. It keeps nothing on disk; after a restart everybody tells it again
// within moments.
//
// One goroutine owns the ads ([adstore]). The handlers of calls send it events through
// one bounded channel and wait for the answer; queries get a list of ads that never
// change again and weigh their constraint outside.
package collector

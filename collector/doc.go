// Package collector is the collector daemon, which holds the ads of everything that
// exists now. Every daemon of the pool advertises itself here as a ClassAd with a lease,
// and negotiators, schedds and commands watch and query. It stores nothing on disk; after
// a restart all daemons send their ads again within moments.
//
// One goroutine owns the ads ([adstore]). The handlers of calls send it events through
// one bounded channel and wait for the answer; queries get a list of immutable ads and
// evaluate their constraint outside of the goroutine.
package collector

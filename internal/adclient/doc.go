// Package adclient connects daemons and collectors. A [Client] advertises one ad of this
// daemon at every collector of the pool; an [AdWatcher] watches all ads of one type at
// every collector and merges them.
//
// Collectors do not communicate with each other: each gets all ads from all daemons, so
// any of them is enough. When two disagree, the newer ad wins: that of the later start of
// its daemon, and within one start that of the higher sequence.
package adclient

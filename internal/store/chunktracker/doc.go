// Package chunktracker decides from which machines a machine fetches the chunks of a
// blob. It is the tracker of a pool: every machine asks it, and no machine learns of
// another in any other way, so its counts are bounds.
//
// The naive way is that each machine fetches a whole blob from the server: a thousand
// machines then wait for a thousand copies over one link. Here the server sends each
// chunk a few times, and the machines send it on to each other:
//
//	machine ──have, results of sources──▶ Tracker.Plan ──sources, chunks──▶ machine
//	                                      (counts)
//
// A plan follows four rules. The rarest chunk goes first, so that the server has soon
// sent one copy of each. A source in the machine's own rack is taken before others; a
// chunk enters a rack once while it is on its way there. A source serves at most
// Options.MaxUploads machines at a time. The server is the last choice, and sends
// at most Options.MaxSeedCopies of a chunk while some machine has it or fetches it.
//
// Each source of a plan is a lease, which ends with its result, or after
// Options.LeaseTime. A machine may state wrong things about itself: it harms nobody else
// for longer than one chunk takes. Who reports a source gets nothing from it for a while;
// others do until machines of Options.MinReporters nodes have reported it, each of a
// lease that it had.
//
// The package is pure: times are arguments, and random choices follow from a seed.
package chunktracker

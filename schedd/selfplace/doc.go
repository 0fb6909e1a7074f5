// Package propose is how a schedd places its batch requests itself, on its own copy of
// the cell, so that the leader has only to look whether what it chose is still free (HRM
// §4.3.2 and algorithm 2; Omega and Borg §3.4 share a cell in the same way). It plans
// with the negotiator's own mind, package match: what one would choose the other would
// choose, too, and a proposal is not worse than what the leader would have done.
//
// Plain batch requests are proposed for: no gangs, no streams, none in a reservation and
// none that takes licences, for whose sake somebody has to see the whole. Where there is
// no room now, places in the queues of machines are proposed, the shortest predicted wait
// first (HRM §4.2 and algorithm 1).
//
// # The copy
//
// It is the machines' ads as the collectors tell them, less what this schedd was granted
// or has proposed lately and the ads do not show yet. What others were granted it does
// not know: that comes back as a conflict, and the leader places it.
//
// # Parts
//
// Naively all schedds look at the same ads and choose the same best machine: with sixteen
// of them fifteen proposals of sixteen conflict. So each has a part of the machines that
// it prefers, by a hash of their names, as many parts as there are schedds; where nothing
// is left there it takes others', in an order of its own. A request that has a Rank keeps
// that, and its schedd takes the conflicts.
package selfplace

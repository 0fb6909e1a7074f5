// Package selfplace lets a schedd place its batch requests on its own copy of the cell.
// The leader has only to check that the chosen resources are still free (HRM §4.3.2 and
// algorithm 2; Omega and Borg §3.4 share a cell in the same way). The schedd plans with
// package match, as the negotiator does: both would choose the same machines, and a
// proposal is no worse than the leader's own choice.
//
// The schedd proposes for plain batch requests only: no gangs, no streams, none in a
// reservation and none with concurrency limits, which need a view of the whole cell.
// Where no resources are free now, it proposes places in the queues of machines, the
// shortest predicted wait first (HRM §4.2 and algorithm 1).
//
// # The copy
//
// The copy consists of the machine ads from the collectors, less what this schedd was
// granted or has proposed lately and the ads do not show yet. It does not know the grants
// to other schedds: those cause a conflict, and the leader then places the units itself.
//
// # Parts
//
// If all schedds saw the same ads and chose the same best machine, fifteen proposals of
// sixteen would conflict among sixteen schedds. So each schedd prefers its own part of
// the machines, by a hash of their names, with as many parts as there are schedds. If its
// part has nothing left it uses the others, in an order of its own. A request with a Rank
// follows that Rank, and its schedd accepts the conflicts.
package selfplace

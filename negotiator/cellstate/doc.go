// Package cellstate holds everything that the negotiator's leader makes a plan of, and
// converts it into the snapshot that package match plans on: the machines with their
// claims, the schedds' requests, pending grants, and the cell policy. The leader makes
// one in every cycle. A [CellState] can also be written to a file ([Write]), the
// checkpoint of a cell (Verma et al., Large-scale cluster management at Google with Borg,
// EuroSys 2015, §3.1). A simulator makes the same plan of it as the leader would have
// made.
//
// It is pure, and decides nothing about who gets what: that is for package match.
package cellstate

// Package reservation holds the PBS commands about advance reservations: pbs_rsub,
// pbs_ralter, pbs_rdel and pbs_rstat.
//
// A reservation is an object of the cell's ledger. A command that makes or changes one
// sends the digest of the reservations that it has read: where somebody else has changed
// them in between, the ledger refuses, so that of two users only one gets the same room.
package reservation

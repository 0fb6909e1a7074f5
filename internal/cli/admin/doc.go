// Package admin holds the commands of administrators: quotas, groups, limits, queues,
// drains, reservations, comments of nodes, and who may change them.
//
// They read and change objects of the cell's ledger. A change is a patch in JSON of one
// object: what a command line does not name stays as it is. The ledger checks and applies
// it; this package only builds the patch and prints what there is. Other families use
// [CellObjects] to read objects and [PatchObject] to change them.
package admin

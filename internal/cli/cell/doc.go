// Package cell is roost cell: the settings of the cell, its negotiators, and checkpoints
// of its state. It speaks to the replicas of the negotiator directly, because it has to
// work where no schedd runs and where no replica leads.
package cell

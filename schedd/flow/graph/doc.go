// Package graph holds the graph of a flow: nodes, the arcs between them, and names.
//
// A flow may have millions of nodes, so there is no object for each. A node is a record
// of 48 bytes. The children of all nodes are one array in compressed sparse row form, in
// which those of one node are neighbours. Names are in a slab of bytes with an index by
// hash.
//
//	AddNode, AddArc, AddJoin ──▶ Finish ──▶ Children, Cycle, Statistics
//
// Arcs from each of n parents to each of m children would be n·m. A join node between
// them makes that n+m: it is done as soon as all parents are.
//
// The package is pure.
package graph

// Package pmi is the server of PMI-1 and PMI-2, by which the ranks of an MPI program find
// each other. MPICH, Intel MPI, MVAPICH and Flux speak them. A rank says by its first
// line which of the two it speaks.
//
// Each rank has a socket of its own and sends lines on it, one at a time. It puts keys,
// enters a barrier, and after the barrier gets the keys of others. The keys since the
// last barrier therefore go from each node of the gang to one place and back as one set:
//
//	rank ── put, barrier_in ──▶ Node ── Barrier(epoch, keys) ──▶ Collector
//	rank ◀── barrier_out ────── Node ◀── Release(epoch, set) ─── Collector
//
// A Node has the ranks of one task. A Collector has several contributors: it gives out a
// set when all have sent theirs. One collector of all nodes is a star. One at each inner
// node of a tree, whose contributors are that node and its children, is a tree.
//
// The set of a barrier is sent again whenever a connection has ended in between. Nodes
// are never more than one barrier apart, because none leaves one before all are in it. So
// a node that repeats its last two barriers after each new connection lets a collector
// that has just started know all there is to know.
//
// The package does no I/O and has no clock: Apply* methods take in what came and return
// what is to be sent. Sources: Flux RFC 13, and the client library of MPICH
// (src/pmi/simple).
package pmi

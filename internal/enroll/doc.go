// Package settle makes a machine a node of a pool, and takes it out again: its key and
// certificate, its node file, its programs, units and manual. The commands init, join,
// leave and install are thin around it.
//
// What it writes comes in an order that lets every step be tried again: the key first,
// which a second attempt uses again, so that a token whose answer was lost is not lost;
// the node file last, by whose being there a machine is known to be a node.
package enroll

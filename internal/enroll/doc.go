// Package enroll makes a machine a node of a pool, and removes it from the pool. It
// writes the node's key and certificate, its node file, programs, units and manual. The
// commands init, join, leave and install are thin wrappers.
//
// It writes files in an order that lets every step be repeated. The key comes first and
// is reused by a second attempt, so that a token is not lost with its answer. The node
// file comes last, because its existence marks the machine as a node.
package enroll

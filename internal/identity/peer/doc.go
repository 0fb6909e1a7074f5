// Package auth decides which peer may call what. A peer is identified by the kernel (the
// credentials of a unix socket) or by its node's certificate. One table lists the roles
// that may call each method, and methods that are not in the table are denied. A test
// compares the table with the service definitions.
package peer

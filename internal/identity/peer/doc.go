// Package auth decides who may call what. A peer is known by the kernel (the credentials
// of a unix socket) or by its node's certificate; one table says which roles may call
// each method, and whatever the table does not name is denied. A test holds the table
// against the service definitions.
package peer

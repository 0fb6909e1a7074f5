// Package pooldir finds the pool of a command: its directory, the socket of its schedd,
// and the name of this node. It reads no node file.
package pooldir

// Package daemons holds the hidden commands that run the daemons of a node and the agents
// that daemons start, for people who type their names.
//
// A master starts roost-daemon itself (package noderoles), with these names and flags.
package daemons

// Package daemons holds the hidden commands that run the daemons of a node and the agents
// that daemons start, for people who type their names.
//
// A master starts roost-daemon itself (package roles), with these names and flags. The
// negotiator alone runs here.
package daemons

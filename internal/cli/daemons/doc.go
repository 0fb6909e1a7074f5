// Package daemons holds the hidden commands that run the daemons of a node and the agents
// that daemons start.
//
// A master starts "roost ROLE --config FILE [--name NAME]" for each role of its node.
// Agents run with the rights of one user, or beside one task, and speak with the daemon
// that started them over their standard streams.
package daemons

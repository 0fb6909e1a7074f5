// Package backup is the commands roost backup and roost restore. An archive has what the
// daemons of one node store, its settings and its keys, as of one instant. What is
// restored is older than what the pool has seen since, so jobs that had not ended are
// held.
package backup

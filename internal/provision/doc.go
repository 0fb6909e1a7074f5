// Package provision runs a user's provisioner: a process of the user, with the rights of
// the user, that asks other batch systems for nodes while tasks of the user wait, and
// lets pilots join the pool from there.
//
// One goroutine owns the state, which package plan decides on and package ledger writes
// to disk. Programs of outer systems run in other goroutines, one at a time for each
// provider; their results come back to the first. What is to be done is on disk before
// it is done.
package provision

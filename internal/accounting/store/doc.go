// Package store keeps the accounting of a pool in SQLite or in PostgreSQL: jobs,
// attempts, machines, roll-ups by hour, day and month, and charges.
//
// Each source's feed has one writer, the accountant. Rows of jobs are divided by the
// month in which the job was submitted: with SQLite each month is a file, with PostgreSQL
// a partition of each table. All else is in the file main.db, or in ordinary tables.
//
// # Exactly once
//
// The naive way is to commit rows and the number of the next entry together. SQLite
// commits each file by itself, though, and a kill between two commits is an ordinary
// event. So Ingest commits in an order in which each state between is harmless:
//
//	names and marks  →  rows of each month  →  marks again, and the next number
//
// After a kill the entries come again. Rows have natural keys, and one with an older
// number never replaces another, so they change nothing. The first marks name the hours
// of the rows that are replaced, which nobody could find later. The second ones are for a
// roll-up that ran between the marks and the rows: it removes only the marks that it
// read.
//
// A roll-up computes an hour from the rows alone. So the order of sources, repeated
// entries and kills leave no trace, and Digest of a store equals that of an undisturbed
// one.
//
// # Schema
//
// The files of the folder schema are numbered steps. One that a release has is never
// edited: what is new comes in a further step, which adds tables and columns.
//
//	main, postgres 2   digests of rates, adjustments, budgets and closed months
//	main, postgres 3   sums of months
package store

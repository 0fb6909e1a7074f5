// Package ranks is the program roost-ranks: the first process of a task of an MPI
// program. It starts the ranks, serves PMI-1 on a socket of each (package internal/pmi),
// and ends when they have ended:
//
//	rank ── PMI_FD ──▶ roost-ranks ── socket of the attempt ──▶ startd ──▶ schedd
//	rank ── PMI_FD ──▶      │
//	                        └── exit code of the task
//
// It is a process of the task, with the rights of its user and in its sandbox: what a
// rank sends is read by nobody with more rights than the rank has. It goes on when the
// startd or the schedd is restarted, and connects again. Ranks that are past MPI_Init
// notice nothing of that.
//
// How the task ends:
//
//	all ranks of all tasks have ended well   Finish comes: exit code 0
//	a rank here fails or aborts              Failed is sent, the other ranks are killed, Stop comes: its code
//	Stop comes                               the ranks are killed: its code
//	SIGTERM                                  the ranks get it, and nothing more is said of them: the worst code
//
// One goroutine owns the state. Each socket and each process has one that reads or waits.
package ranks

// Package shim is the program roost-starter: the parent of a claim's tasks, from the claim to its end.
//
// It is one goroutine on one locked thread around poll(2), over the listening socket, the connection to the startd, a descriptor of the
// task's first process, and a timer for the next deadline (walltime, notice, lease). One thread, because SIGCHLD goes to the
// thread that forked, and because PR_SET_PDEATHSIG follows the thread, not the process. It uses package syscall directly and links neither
// os nor fmt: one of these runs beside every claim, and its resident memory is bounded by a test.
//
// A task's life:
//
//	idle ── Start ──▶ record, open files, fork ──▶ running ── TERM, notice, KILL ─┐
//	  ▲                      │ failed                  │ first process ended      │
//	  │                      ▼                         ▼                          ▼
//	  └───── Forget ──────  ended ◀── record ◀── kill and reap all descendants ◀──┘
package shim

// Package starter is the program roost-starter: the parent of a claim's tasks, from the
// claim to its end.
//
// It is one goroutine on one locked thread around poll(2), over the listening socket, the
// connection to the startd, a descriptor of the task's first process, and a timer for the
// next deadline (walltime, notice, lease). One thread, because SIGCHLD goes to the thread
// that forked, and because PR_SET_PDEATHSIG follows the thread, not the process. It uses
// package syscall directly, and not os or fmt: one of these runs beside every claim, and
// its resident memory is bounded by a test. What it does not need while it waits it gives
// back (releaseMemory in memory.go).
//
// Where root may, each task runs in a sandbox: PID, mount, IPC and UTS namespaces, and a
// user namespace where root lacks CAP_SYS_RESOURCE. The starter stages what all sandboxes
// of its claim share in a mount namespace of its own (sandbox_stage.go,
// sandbox_mounts.go). roost-setup is a program of a few hundred bytes in assembly (init/)
// that carries out lists of system calls (syscall_list.go). One process of it, the server
// of the claim's sandboxes, makes another mount namespace that has nothing else, and
// creates the first process of each task in the new namespaces (sandbox_server.go). That
// one carries out the task's list (sandbox_steps.go): it mounts the rest from inside,
// starts the user's program with the user's rights, reports, and becomes roost-init
// unless the program has ended within some milliseconds. roost-init is as small, and has
// files of its own because it is part of every checkpoint: it reaps, writes the status of
// the user's program into a file, and ends with it. A second runtime of Go in the place
// of roost-setup would cost more than all namespaces and mounts, and so would a fork of
// the starter for each task. A task that goes on from a checkpoint is made by CRIU
// instead, which a helper runs, and its process 1 becomes the starter's child when the
// helper ends (restore.go). Tasks are born in the claim's cgroup, and the starter and
// that process are not in it, because they have to go on when tasks are frozen
// (task_cgroup.go).
//
// A task's life:
//
//	idle ── Start ──▶ record, open files, fork ──▶ running ── TERM, notice, KILL ─┐
//	  ▲                      │ failed                  │ first process ended      │
//	  │                      ▼                         ▼                          ▼
//	  └───── Forget ──────  ended ◀── record ◀── kill and reap all descendants ◀──┘
package starter

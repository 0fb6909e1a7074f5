// Package starter implements the program roost-starter, the parent process of a claim's
// tasks for the whole life of the claim.
//
// The starter is one goroutine on one locked thread around poll(2). It polls the
// listening socket, the connection to the startd, a pidfd of the task's first process,
// and a timer for the next deadline (walltime, notice, lease). It uses one thread because
// SIGCHLD goes to the thread that forked, and because PR_SET_PDEATHSIG follows the
// thread, not the process. It uses package syscall directly, and not os or fmt: one
// starter runs beside every claim, and a test bounds its resident memory. While it waits
// it returns unneeded memory to the kernel (releaseMemory).
//
// If the starter runs as root and the startd requests it, each task runs in a sandbox:
// PID, mount, IPC and UTS namespaces, and a user namespace where root lacks
// CAP_SYS_RESOURCE. The starter prepares what all sandboxes of its claim share in a mount
// namespace of its own (sandbox_stage.go). Then it forks this same program into the new
// namespaces (sandbox_launch.go), which mounts the rest from inside, starts the user's
// program, and finally becomes roost-init (sandbox_init.go, init/). That is a program of
// a few hundred bytes that reaps processes, writes the status of the user's program into
// a file, and exits with it. A task that resumes from a checkpoint is created by CRIU
// instead, in a helper process; its process 1 becomes the starter's child when the helper
// exits (restore.go). Tasks are created in the claim's cgroup. The starter is not in it,
// because it must continue while they are frozen (task_cgroup.go).
//
// The life of a task:
//
//	idle ── Start ──▶ record, open files, fork ──▶ running ── TERM, notice, KILL ─┐
//	  ▲                      │ failed                  │ first process ended      │
//	  │                      ▼                         ▼                          ▼
//	  └──── Discard ──────  ended ◀── record ◀── kill and reap all descendants ◀──┘
package starter

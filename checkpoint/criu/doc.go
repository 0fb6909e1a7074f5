// Package criu takes checkpoints of running tasks, and restores tasks from them, with
// CRIU (https://criu.org).
//
// A task that can be dumped runs in PID, mount, IPC and UTS namespaces of its own, below
// one first process; see startd/starter. Dump leaves it running: CRIU stops all its
// processes at once and writes their memory and state as images. While they are stopped,
// the scratch directory is packed and the captured output copied, so that files and
// memory are of one instant. Restore makes the processes again, with the same numbers
// inside their namespaces, in other directories and in another cgroup.
//
// All of it happens in a process of its own, the agent ("roost checkpoint-agent"). The
// library's socket leaks into a process that another goroutine forks meanwhile, the
// restored processes are children of the process that restored them, and mounts need a
// mount namespace that can be discarded. Dump, Restore and Check run an agent and wait
// for it. The starter runs an agent itself for a restore, with the spec as JSON on its
// standard input, so that the restored processes become its own children when the agent
// ends.
//
// A dump that fails, or is killed, leaves the task as it was. Failures are sentences for
// the task's owner (Probe finds most of them without a dump), with a class: what will
// never work, and what may work later.
package criu

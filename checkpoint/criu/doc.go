// Package criu takes checkpoints of running tasks, and brings tasks back from them, with
// CRIU (https://criu.org).
//
// A task that can be dumped is shut in a PID, a mount, an IPC and a UTS namespace of its
// own, below one first process; see startd/starter. Dump leaves it running: CRIU stops
// all its processes at once, writes their memory and state as images, and while they
// still stand still the scratch directory is packed and the captured output copied, so
// that files and memory are of one instant. Restore makes the tree again, with the same
// numbers inside its namespaces, in other directories and in another cgroup.
//
// All of it happens in a process of its own, the agent ("roost checkpoint-agent"): the
// library's socket leaks into whatever another goroutine forks meanwhile, the restored
// tree is a child of whoever restored it, and mounts need a namespace that can be thrown
// away. Dump, Restore and Check run an agent and wait for it. The starter runs one itself
// for a restore, with the spec as JSON on its standard input, so that the tree falls to
// the starter when the agent ends.
//
// A dump that fails, or is killed, leaves the task as it was. Reasons come as sentences
// for the task's owner (Probe finds most of them without a dump), with a class: what will
// never work, and what may work later.
package criu

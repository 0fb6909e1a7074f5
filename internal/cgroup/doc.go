// Package cgroup gives each claim of a machine a control group: what it may use, how much
// it did use, and one place where all its processes are frozen and killed at once.
//
// A group has two sides, which need not be the same directory:
//
//	            limits and figures                        task directory
//	version 1   one directory in each hierarchy that is   in a cgroup2 mount that is there beside them, even one without
//	            mounted (cpu, memory, devices, …)         controllers; else in the freezer hierarchy
//	version 2   one directory, with two parts             "task/run"; the starter is in "starter"
//
// The task directory stands in another one, by which the group is held (FreezeForOwner).
// So a task stands still while anybody wants it to: whoever freezes and thaws it, to
// suspend it or to save it, has the inner directory, and the owner of the machine the
// outer one.
//
// The starter of a claim joins the limits (Add), so that everything it forks has them
// without a move; a task is cloned into the task directory (CLONE_INTO_CGROUP) by its
// starter. The starter itself is not in that directory: it must be able to run while its
// task is frozen, and to live when the task is killed.
//
// Without root's rights, or without controllers, nothing here fails: Can says what there
// is, and the rest is left out.
package cgroup

// Package cgroup gives each claim of a machine a control group. The group limits and
// measures what the claim uses, and its processes can be frozen and killed at once.
//
// A group has two sides, which need not be the same directory:
//
//	            limits and figures               task directory
//	version 1   one directory in each mounted    in a cgroup2 mount beside them, even
//	            hierarchy (cpu, memory, …)       without controllers; else in the freezer
//	                                             hierarchy
//	version 2   one directory, with two parts    "task/run"; the starter is in "starter"
//
// The task directory is inside of another directory, which FreezeForOwner freezes. So a
// task is frozen while either directory is: suspending and checkpointing freeze and thaw
// the inner directory, and the machine owner's enforcer the outer one.
//
// The starter of a claim joins the limits (Add), so that everything that it forks is
// limited without a move; the starter clones the task into the task directory
// (CLONE_INTO_CGROUP). The starter itself is not in that directory: it must run while its
// task is frozen, and survive when the task is killed.
//
// Without root's rights, or without controllers, no function fails: Enforcement lists
// what is available, and the rest is left out.
package cgroup

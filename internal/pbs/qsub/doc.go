// Package pbs understands the command line and the script of qsub as OpenPBS has them,
// with the options of Torque that collide with none of its. POSIX XCU chapter 3 is the
// base of both.
//
//	arguments ──▶ options ─┐
//	                       ├─▶ one value an option, the command line wins ──▶ a request ──▶ submit.Job, with PBS's names, paths and
//	script ──▶ #PBS lines ─┘     (of -l one a resource, of -W one a key)                    environment
//
// A job is one program that has one chunk, or a gang of them, each on one machine. What
// cannot be had is refused with a sentence, and never taken silently; roost-pbs(7) lists
// what is taken and has no effect.
//
// The package is pure: scripts are read through [QsubCaller].
package qsub

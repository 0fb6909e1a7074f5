// Package pbs parses the command line and the script of qsub as OpenPBS does, and the
// options of Torque that do not collide with OpenPBS's. POSIX XCU chapter 3 is the base
// of both.
//
//	arguments ─▶ options ──┐
//	                       ├─▶ one value for each option, ──▶ a request ──▶ jobspec.Job with
//	script ─▶ #PBS lines ──┘   the command line wins                        PBS's names, paths
//	                           (-l by resource, -W by key)                  and environment
//
// A job is one program with one chunk, or a gang of chunks, each on one machine. What is
// not available is refused with a message and never ignored silently; roost-pbs(7) lists
// what is accepted without effect.
//
// The package is pure: scripts are read through [QsubCaller].
package qsub

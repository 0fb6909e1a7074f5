// Package qalter understands the command line of qalter as OpenPBS has it, with the
// options of Torque that collide with none of its.
//
//	arguments ──▶ options as of qsub ──▶ what changes of the ad of a job that waits, or that runs
//
// An attribute that may not be changed is refused with PBS's exit status and a sentence.
//
// The package is pure: what it asks of the job comes in as a [CurrentJob].
package qalter

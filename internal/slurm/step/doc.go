// Package step is the pure part of job steps, which srun of the Slurm dialect starts
// inside an allocation: where its tasks go, what each finds in its environment, and how
// their ends are reported. It does no I/O.
//
//	srun on the first machine ── frames on the streams of a command ──▶ roost step-agent on another machine
//	   │  tasks of this machine                                            │  tasks of that machine
//	   ▼                                                                   ▼
//	processes                                                           processes
//
// Source: srun(1) of Slurm 24.11.
package step

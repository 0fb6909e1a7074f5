// Package stepgroup runs the tasks of a job step on one machine: it starts their
// processes, gives them standard input, passes on what they write, and serves PMI-1 to
// those of an MPI program (package internal/pmi). srun has one for its own machine, and
// an agent on each other machine has one for srun.
//
// The tasks are processes of the job, with the rights of its user and in its sandbox, and
// each has a process group of its own.
package stepgroup

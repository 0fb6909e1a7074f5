// Package sbatch reads the command line and the script of sbatch, and makes the job that
// they ask for. A job of sbatch is one of qsub with other words: chunks on machines, a
// script that runs once on the first of them, and a file of nodes (package
// internal/pbs/qsub). It is pure: the caller gives access to files.
//
// Source: sbatch(1) of Slurm 24.11.
package sbatch

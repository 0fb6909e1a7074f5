// Package records describes jobs of Roost as Slurm does: states, reasons, ids, the fields
// of squeue, the text of scontrol show job and the JSON of squeue. It is pure.
//
// A job that qsub, roost submit or condor_submit made is shown as one of sbatch is.
package records

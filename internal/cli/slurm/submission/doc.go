// Package submission is sbatch and scancel of the Slurm dialect.
package submission

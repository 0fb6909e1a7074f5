// Package reports has the commands of Slurm that report on jobs, nodes and queues, and
// scontrol.
package reports

// Package checkpoint decides when a running task should be checkpointed.
//
// A checkpoint costs the task the time in which it is stopped; a failure costs it all
// work since the last checkpoint. The best interval follows from the cost of a checkpoint
// and the failure rate of the machine (DalyInterval). Both are measured: the cost with
// each checkpoint, the failures in the machine's own past, which FailureHistory
// summarizes in two numbers. Package schedd/queue decides which images are stored and
// from which one an attempt continues. The package is pure.
package checkpoint

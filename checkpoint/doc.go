// Package checkpoint decides when a running task is worth saving.
//
// A checkpoint costs the task the time in which it stands still; a failure costs it all
// work since the last one. How often is best follows from the cost of one and from how
// often the machine fails (DalyInterval 2006). Both are measured: the cost by each
// checkpoint that is taken, the failures from the machine's own past, which
// FailureHistory keeps in two numbers. Which images are kept, and what an attempt goes on
// from, is the business of schedd/queue. The package is pure.
package checkpoint

// Package trace reads and writes logs in the Standard Workload Format of the Parallel
// Workloads Archive (Chapin et al., Benchmarks and Standards for the Evaluation of
// Parallel Job Schedulers, JSSPP 1999, §2). A line is a job of eighteen numbers, with -1
// for unknown ones. Comments begin with a semicolon, and some of them are header fields
// ("; MaxProcs: 100"). It is pure.
package trace

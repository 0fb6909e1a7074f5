// Package swf reads and writes logs in the Standard Workload Format of the Parallel
// Workloads Archive (Chapin et al., Benchmarks and Standards for the Evaluation of
// Parallel TraceJob Schedulers, JSSPP 1999, §2): one job a line, eighteen numbers, -1 for
// what is not known; comments, of which some are fields of a header ("; MaxProcs: 100"),
// begin with a semicolon. It is pure.
package swf

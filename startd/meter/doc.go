// Package meter measures what the tasks of a machine use, and ends those that use more
// than they may.
//
// Each attempt that runs has a meter, from before its start until its end. A claim's
// runner starts it and finishes it; three goroutines of the startd go over all of them:
//
//	WatchUsage   CPU time, memory, I/O and GPUs, for schedds, the ad and the estimates
//	WatchDisks   captured output, scratch directories, and deleted files that are open
//	WatchLimits  limits that the kernel does not enforce: CPU time and memory of a process
//
// The figures are those of the claim's control group. Where there is none, they are sums
// over the processes that descend from the starter, as /proc has them (process_tree.go).
// What is found goes to the startd's loop by Host; an attempt that uses too much is ended
// by the function that it came with.
package meter

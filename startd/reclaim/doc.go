// Package reclaim estimates how much of their requested resources tasks will use. The
// rest can be lent to work that tolerates eviction (Borg §5.5). The package also selects
// the tasks to evict when an estimate was wrong.
//
// A task's limit is its request. Its reservation is its expected need:
//
//	limit ┤━━━━━━━━━━━━━╮                         the first 300 s: the need is unknown
//	      │              ╰─╮        ╭─╮           then it decays towards the use and a margin,
//	      │                 ╰──╮    │ ╰──╮        by half in each half-life,
//	      │                     ╰───╯     ╰───    and rises at once when they exceed it
//	  use ┤   ╭──╮    ╭─╮  ───╮    ╭╮
//	      └───╯  ╰────╯ ╰─────────╯  ╰────────
//
// so that at every sample
//
//	min(use, limit) <= reservation <= limit
//
// The difference between limit and reservation is reclaimed. Production tasks are placed
// against limits and never rely on it; batch and free tasks may be placed there. CPU time
// is compressible: when it is short, the tasks on reclaimed resources are throttled.
// Memory is not: the tasks are evicted. GPUs and disk are never reclaimed: the memory of
// a GPU cannot be taken back, and a disk fills too slowly to derive a margin.
//
// The paper says that the aggressive setting reduces the margin of the baseline, and that
// medium is half-way between (§5.5, figure 12), but gives no numbers. The values of
// [ParamsOf] are our own. Over a synthetic day of a machine with three quarters requested
// by production (BenchmarkReclaimedDay of package slot), 12 % of all work runs on
// reclaimed resources with baseline, 19 % with medium and 30 % with aggressive, and 5, 5
// and 3 % of the batch tasks are evicted; in the paper's median cell it was about 20 % of
// the work.
package reclaim

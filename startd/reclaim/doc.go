// Package reclaim estimates what tasks will use of what they asked for, so that the rest
// can be lent to work that bears being stopped (Borg §5.5), and says who must go when an
// estimate was wrong.
//
// A task's limit is what it asked for. Its reservation is what it is expected to need:
//
//	limit ┤━━━━━━━━━━━━━╮                         the first 300 s: nobody knows yet
//	      │              ╰─╮        ╭─╮           then it decays towards the use and a margin,
//	      │                 ╰──╮    │ ╰──╮        by half in each half-life,
//	      │                     ╰───╯     ╰───    and it jumps up at once when the use and its margin exceed it
//	  use ┤   ╭──╮    ╭─╮  ───╮    ╭╮
//	      └───╯  ╰────╯ ╰─────────╯  ╰────────
//
// so that at every sample
//
//	min(use, limit) <= reservation <= limit
//
// What lies between reservation and limit is reclaimed. Production is placed against
// limits and never relies on it; batch and free work may be placed there. Processor time
// is compressible: when it is short, those that run in reclaimed room are throttled.
// Memory is not: they are ended. GPUs and disk are never reclaimed: a card's memory
// cannot be taken back, and a disk fills too slowly to tell a margin.
//
// The paper says that the baseline's margin was reduced for the aggressive setting, and
// that medium was half-way between (§5.5, figure 12), but gives no numbers. Those of
// [ParamsOf] are ours. Over a made-up day of a machine three quarters of which production
// asked for (BenchmarkReclaimedDay of package slot), 12 % of all work runs in reclaimed
// room with baseline, 19 % with medium and 30 % with aggressive, and 5, 5 and 3 % of the
// batch tasks have to go; in the paper's median cell it was about 20 % of the work.
package reclaim

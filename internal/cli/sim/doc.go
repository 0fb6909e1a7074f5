// Package sim holds roost sim, which plays with the daemons' own code what a pool would
// do.
//
// Each subcommand has a file: replay, pack, compact, fit, whatif, when, hrm, model,
// faults and run. They read logs, GPU traces, mixes of jobs or checkpoints of a cell, and
// print tables, CSV and charts. What plays is in internal/sim. Most answers are computed
// twice; two different digests are a defect and end the command with an error.
package sim

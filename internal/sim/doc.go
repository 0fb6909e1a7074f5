// Package sim replays logs of jobs in the cores that run a pool, with a virtual clock.
// Borg's Fauxmaster is its model (Verma et al., Large-scale cluster management at Google
// with Borg, EuroSys 2015, §3.1). It is pure: the same input gives the same output, event
// for event.
//
// [Replay] replays a log on one machine with as many processors as the log's machine had.
// Published schedules exist for such replays. [match.Matcher] decides which job starts
// when, as it does in the negotiator. This package has the clock, the events and the
// choices of a site: how long jobs are expected to take, and in which order they may be
// backfilled.
package sim

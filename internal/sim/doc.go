// Package sim is the fauxmaster: it drives the cores that run a pool with a virtual clock
// (Verma et al., Large-scale cluster management at Google with Borg, EuroSys 2015, §3.1).
// It is pure: the same input gives the same output, event for event.
//
// [Replay] plays a log of jobs on one machine of as many processors as the log's had, for
// which published schedules exist. Who starts when is decided by [match.Matcher], as in
// the negotiator; what is here is the clock, the events and what a site decides: how long
// jobs are expected to take, and in which order they may fill gaps.
package sim

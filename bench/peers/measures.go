package main

import (
	"context"
	"fmt"
)

// figureSpec is one number of a measurement, and a line of the table.
type figureSpec struct {
	key          string // key in the values of the result
	title        string
	label        string // short label, for the chart
	unit         figureUnit
	moreIsBetter bool // higher values are better
}

// figureUnit is the unit of a figure.
type figureUnit string

const (
	unitSeconds   figureUnit = "seconds"
	unitPerSecond figureUnit = "per second"
	unitBytes     figureUnit = "bytes"
)

// systemMeasure is a measurement that is made with each system in turn.
type systemMeasure struct {
	name      string
	perRound  bool                  // made in each round; else once
	needsCell bool                  // needs a system that was started for matching
	jobCounts func(workSizes) []int // the numbers of jobs for which it is made, if any
	run       func(*systemAgent, context.Context, measureSpec, *measureResult) error
	figures   func(n int, s workSizes) []figureSpec
}

func systemMeasures() []systemMeasure {
	return []systemMeasure{
		{name: "idle", run: (*systemAgent).measureIdleMemory, figures: func(int, workSizes) []figureSpec {
			return []figureSpec{{"idle", "memory of the central daemons, idle", "idle", unitBytes, false}}
		}},
		{name: "latency", perRound: true, run: (*systemAgent).measureLatency,
			figures: func(int, workSizes) []figureSpec {
				return []figureSpec{{"start", "submit to start, idle pool", "submit to start", unitSeconds, false},
					{"command", "the command that submits", "the command", unitSeconds, false}}
			}},
		{name: "batch", perRound: true, run: (*systemAgent).measureBatch,
			figures: func(_ int, s workSizes) []figureSpec {
				return []figureSpec{{"batch", fmt.Sprintf("jobs finished a second, an array of %d /bin/true", s.Batch),
					"array, finished", unitPerSecond, true},
					{"cost", "CPU time for each of them", "CPU for a job", unitSeconds, false}}
			}},
		{name: "loop", perRound: true, run: (*systemAgent).measureSubmitLoop,
			figures: func(int, workSizes) []figureSpec {
				return []figureSpec{{"loop", "submits a second, commands in a shell's loop", "submitted in a loop",
					unitPerSecond, true}}
			}},
		{name: "running", perRound: true, run: (*systemAgent).measureRunningMemory,
			figures: func(int, workSizes) []figureSpec {
				return []figureSpec{{"running", "memory beside each running job", "a running job", unitBytes, false}}
			}},
		{name: "array", jobCounts: queuedSizes, run: (*systemAgent).measureQueuedArray,
			figures: func(n int, _ workSizes) []figureSpec {
				return []figureSpec{{"array", fmt.Sprintf("memory of the central daemons, an array of %d queued", n),
					fmt.Sprintf("array of %d", n), unitBytes, false}}
			}},
		{name: "each", jobCounts: queuedSizes, run: (*systemAgent).measureQueuedJobs,
			figures: func(n int, _ workSizes) []figureSpec {
				return []figureSpec{{"each", fmt.Sprintf("memory of the central daemons, %d jobs queued", n),
					fmt.Sprintf("%d jobs", n), unitBytes, false}}
			}},
		{name: "restart", run: (*systemAgent).measureRestart, figures: func(_ int, s workSizes) []figureSpec {
			return []figureSpec{
				{"answers", fmt.Sprintf("queue daemon killed, %d jobs queued: answers", s.Restart), "killed: answers",
					unitSeconds, false},
				{"starts", "the same: starts a job", "killed: starts a job", unitSeconds, false},
			}
		}},
		{name: "match", needsCell: true, run: (*systemAgent).measureMatching,
			figures: func(_ int, s workSizes) []figureSpec {
				return []figureSpec{{"match", fmt.Sprintf("matching %d jobs of %d kinds to %d machines",
					s.Jobs, s.Kinds,
					s.Machines), "matching", unitSeconds, false}}
			}},
	}
}

func queuedSizes(s workSizes) []int { return s.Queued }

func (a *systemAgent) measureMatching(ctx context.Context, o measureSpec, ans *measureResult) (err error) {
	*ans, err = a.matchJobs(ctx, o.Sizes)
	return err
}

func measureNames() (names []string) {
	for _, m := range systemMeasures() {
		names = append(names, m.name)
	}
	return names
}

func findMeasure(name string) (systemMeasure, bool) {
	for _, m := range systemMeasures() {
		if m.name == name {
			return m, true
		}
	}
	return systemMeasure{}, false
}

// jobCountList returns the numbers of jobs for which the measurement is made.
func (m systemMeasure) jobCountList(s workSizes) []int {
	if m.jobCounts == nil {
		return []int{0}
	}
	return m.jobCounts(s)
}

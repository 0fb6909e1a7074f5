package lublin

import (
	"fmt"
	"math"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/trace"
)

// LogModel holds the settings of a generated log.
type LogModel struct {
	Jobs               int
	Processors         int     // of the machine, and at most of one job
	Seed               uint64  // the same seed gives the same log
	Types              bool    // generate batch and interactive jobs, each with parameters of their own
	OverestimateFactor float64 // a job asks for its run time times a factor between 1 and 1 more than this
}

// Bounds on a log, far above every known log.
const (
	maxJobs       = 100_000_000
	maxProcessors = 1 << 30
	maxOverask    = 1000
)

// No job runs for more than two days, and no gap is longer than five days of rush hours:
// the authors' program has these bounds of both logarithms.
const (
	maxRuntime = 12
	maxGap     = 13
)

// jobType holds the parameters of a type of jobs. Sizes are logarithms to base 2, times
// are natural logarithms.
type jobType struct {
	queue int64 // queue number in the log: 0 interactive, 1 batch
	// part of all jobs that is serial, and part that is parallel with a power of two as
	// size
	serial, pow2 float64
	minSize      float64 // the smallest parallel job, set a little lower to make it likelier
	// how far the largest job is below the machine's size, and how far the border of the
	// stages is below the largest job
	maxSizeOffset, stageOffset float64
	lowStagePart               float64           // part of the parallel jobs that is of the lower stage
	shortRuntime, longRuntime  gammaDistribution // run times
	shortSlope, shortPart      float64           // part of the jobs that is short: shortSlope*processors + shortPart
	rushGap                    gammaDistribution // time between two arrivals in rush hours
	// arrivals over the day, in half hours of a day that begins at half past five
	arrivalsByHour gammaDistribution
}

// jobTypes returns the published parameters. The shape of rush-hour gaps is extended to
// all hours of the day by the ratio that is published with it.
func (m *LogModel) jobTypes() []jobType {
	if !m.Types {
		return []jobType{{
			serial: 0.244, pow2: 0.576, minSize: 0.8, maxSizeOffset: 0, stageOffset: 2.5, lowStagePart: 0.86,
			shortRuntime: gammaDistribution{4.2, 0.94}, longRuntime: gammaDistribution{312, 0.03}, shortSlope: -0.0054,
			shortPart: 0.78,
			rushGap:   gammaDistribution{10.2303 * 1.0225, 0.4871}, arrivalsByHour: gammaDistribution{8.1737, 3.9631},
		}}
	}
	return []jobType{{
		queue: 0, serial: 0.1541, pow2: 0.625, minSize: 1, maxSizeOffset: 1.5, stageOffset: 2.5, lowStagePart: 0.705,
		shortRuntime: gammaDistribution{3.8351, 0.6605}, longRuntime: gammaDistribution{7.073, 0.6856},
		shortSlope: -0.0118, shortPart: 0.9156,
		rushGap: gammaDistribution{6.5510 * 0.9797, 0.6621}, arrivalsByHour: gammaDistribution{8.9186, 3.6680},
	}, {
		queue: 1, serial: 0.2927, pow2: 0.6686, minSize: 1.2, maxSizeOffset: 0, stageOffset: 2, lowStagePart: 0.875,
		shortRuntime: gammaDistribution{6.57, 0.823}, longRuntime: gammaDistribution{639.1, 0.0156}, shortSlope: -0.003,
		shortPart: 0.6986,
		rushGap:   gammaDistribution{6.0415 * 1.0519, 0.8531}, arrivalsByHour: gammaDistribution{6.1271, 5.2740},
	}}
}

// DrawLog generates a log that begins at midnight. The error wraps roost.Invalid.
func (m *LogModel) DrawLog() (*trace.Log, error) {
	switch {
	case m.Jobs < 1 || m.Jobs > maxJobs:
		return nil, fmt.Errorf("%w: a log of %d jobs", roost.Invalid, m.Jobs)
	case m.Processors < 1 || m.Processors > maxProcessors:
		return nil, fmt.Errorf("%w: a machine of %d processors", roost.Invalid, m.Processors)
	case !(m.OverestimateFactor >= 0 && m.OverestimateFactor <= maxOverask):
		return nil, fmt.Errorf("%w: jobs that ask for %v times more than they take", roost.Invalid,
			m.OverestimateFactor)
	}
	s := randomSource(m.Seed)
	kinds := m.jobTypes()
	streams := make([]*arrivalStream, len(kinds))
	for i := range kinds {
		streams[i] = newStream(&kinds[i], &s)
	}
	log := &trace.Log{Headers: m.headers(), Jobs: make([]trace.Job, m.Jobs)}
	for i := range log.Jobs {
		next := streams[0]
		for _, o := range streams[1:] {
			if o.nextArrival < next.nextArrival {
				next = o
			}
		}
		log.Jobs[i] = m.drawJob(int64(i+1), next, &s)
		next.drawNext(&s)
	}
	return log, nil
}

func (m *LogModel) headers() []trace.HeaderField {
	return []trace.HeaderField{
		{Name: "Version", Value: "2.2"},
		{Name: "Computer", Value: "none: a model of rigid jobs (Lublin and Feitelson, JPDC 2003)"},
		{Name: "MaxJobs", Value: fmt.Sprint(m.Jobs)}, {Name: "MaxProcs", Value: fmt.Sprint(m.Processors)},
		{Name: "Note", Value: fmt.Sprintf("seed %d, batch and interactive jobs apart: %t, asked for up to %v times "+
			"more than taken", m.Seed, m.Types, m.OverestimateFactor)},
	}
}

// drawJob draws the next job of a stream.
func (m *LogModel) drawJob(id int64, of *arrivalStream, s *randomSource) trace.Job {
	procs := of.drawSize(m.Processors, s)
	run := int64(math.Exp(of.drawRuntime(procs, s)))
	request := run
	if m.OverestimateFactor > 0 {
		request = int64(float64(run) * s.between(1, 1+m.OverestimateFactor))
	}
	return trace.Job{
		ID: id, Submit: int64(of.nextArrival), Wait: -1, RunTime: run, Processors: int64(procs), CPU: -1, Memory: -1,
		RequestedProcessors: int64(procs), RequestedTime: request, RequestedMemory: -1, Status: 1,
		User: -1, Group: -1, Program: -1, Queue: of.queue, Partition: -1, PrecedingJob: -1, ThinkTime: -1,
	}
}

// drawSize draws the number of processors of a job.
func (k *jobType) drawSize(processors int, s *randomSource) int {
	u := s.uniform()
	if u <= k.serial {
		return 1
	}
	top := max(math.Log2(float64(processors))-k.maxSizeOffset, 0)
	low := min(k.minSize, top)
	bend := max(top-k.stageOffset, low)
	var size float64
	if s.uniform() <= k.lowStagePart {
		size = s.between(low, bend)
	} else {
		size = s.between(bend, top)
	}
	if u <= k.serial+k.pow2 {
		size = math.Round(size)
	}
	return min(int(math.Round(math.Exp2(size))), processors)
}

// drawRuntime draws the natural logarithm of the run time, in seconds, of a job.
func (k *jobType) drawRuntime(processors int, s *randomSource) float64 {
	if s.uniform() <= min(max(float64(k.shortSlope*float64(processors))+k.shortPart, 0), 1) {
		return k.shortRuntime.drawBelow(s, maxRuntime)
	}
	return k.longRuntime.drawBelow(s, maxRuntime)
}

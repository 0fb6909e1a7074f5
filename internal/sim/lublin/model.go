package lublin

import (
	"fmt"
	"math"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/swf"
)

// Model says which log is wanted.
type Model struct {
	Jobs       int
	Processors int     // of the machine, and of its largest job
	Seed       uint64  // the same gives the same log
	Types      bool    // batch and interactive jobs, each with parameters of their own
	Overask    float64 // a job asks for as long as it takes, or up to so many times more
}

// Bounds on a log: nobody has had more.
const (
	maxJobs       = 100_000_000
	maxProcessors = 1 << 30
	maxOverask    = 1000
)

// No job runs for more than two days, and none comes more than five days of rush hours after the one before: so the authors' own program bounds both logarithms.
const (
	maxRun = 12
	maxGap = 13
)

// kind is the jobs of a type. Sizes are logarithms to base 2, times natural ones.
type kind struct {
	queue        int64   // in the log: 0 interactive, 1 batch
	serial, pow2 float64 // what part of all jobs is serial, and what part is parallel and of a power of two
	low          float64 // the smallest parallel job, a little less to make it likelier
	top, bend    float64 // by how much the largest is below the machine's size, and by how much the stages part below that
	first        float64 // what part of the parallel jobs is of the lower stage
	short, long  gamma   // run times
	slope, part  float64 // what part is short: slope*processors + part
	gap          gamma   // the time between two in rush hours
	day          gamma   // when they come, in half hours of a day that begins at half past five
}

// kinds are the published parameters. The shape of gaps in rush hours is made one for all hours of the day by the ratio that is published with it.
func (m *Model) kinds() []kind {
	if !m.Types {
		return []kind{{
			serial: 0.244, pow2: 0.576, low: 0.8, top: 0, bend: 2.5, first: 0.86, short: gamma{4.2, 0.94}, long: gamma{312, 0.03}, slope: -0.0054, part: 0.78,
			gap: gamma{10.2303 * 1.0225, 0.4871}, day: gamma{8.1737, 3.9631},
		}}
	}
	return []kind{{
		queue: 0, serial: 0.1541, pow2: 0.625, low: 1, top: 1.5, bend: 2.5, first: 0.705, short: gamma{3.8351, 0.6605}, long: gamma{7.073, 0.6856}, slope: -0.0118, part: 0.9156,
		gap: gamma{6.5510 * 0.9797, 0.6621}, day: gamma{8.9186, 3.6680},
	}, {
		queue: 1, serial: 0.2927, pow2: 0.6686, low: 1.2, top: 0, bend: 2, first: 0.875, short: gamma{6.57, 0.823}, long: gamma{639.1, 0.0156}, slope: -0.003, part: 0.6986,
		gap: gamma{6.0415 * 1.0519, 0.8531}, day: gamma{6.1271, 5.2740},
	}}
}

// Log makes a log. It begins at midnight. The error wraps roost.Invalid.
func (m *Model) Log() (*swf.Log, error) {
	switch {
	case m.Jobs < 1 || m.Jobs > maxJobs:
		return nil, fmt.Errorf("%w: a log of %d jobs", roost.Invalid, m.Jobs)
	case m.Processors < 1 || m.Processors > maxProcessors:
		return nil, fmt.Errorf("%w: a machine of %d processors", roost.Invalid, m.Processors)
	case !(m.Overask >= 0 && m.Overask <= maxOverask):
		return nil, fmt.Errorf("%w: jobs that ask for %v times more than they take", roost.Invalid, m.Overask)
	}
	s := source(m.Seed)
	kinds := m.kinds()
	streams := make([]*stream, len(kinds))
	for i := range kinds {
		streams[i] = newStream(&kinds[i], &s)
	}
	log := &swf.Log{Headers: m.headers(), Jobs: make([]swf.Job, m.Jobs)}
	for i := range log.Jobs {
		next := streams[0]
		for _, o := range streams[1:] {
			if o.at < next.at {
				next = o
			}
		}
		log.Jobs[i] = m.job(int64(i+1), next, &s)
		next.forward(&s)
	}
	return log, nil
}

func (m *Model) headers() []swf.Header {
	return []swf.Header{
		{Name: "Version", Value: "2.2"}, {Name: "Computer", Value: "none: a model of rigid jobs (Lublin and Feitelson, JPDC 2003)"},
		{Name: "MaxJobs", Value: fmt.Sprint(m.Jobs)}, {Name: "MaxProcs", Value: fmt.Sprint(m.Processors)},
		{Name: "Note", Value: fmt.Sprintf("seed %d, batch and interactive jobs apart: %t, asked for up to %v times more than taken", m.Seed, m.Types, m.Overask)},
	}
}

// job draws the job that comes next of a kind.
func (m *Model) job(id int64, of *stream, s *source) swf.Job {
	procs := of.size(m.Processors, s)
	run := int64(math.Exp(of.run(procs, s)))
	request := run
	if m.Overask > 0 {
		request = int64(float64(run) * s.between(1, 1+m.Overask))
	}
	return swf.Job{
		ID: id, Submit: int64(of.at), Wait: -1, Run: run, Procs: int64(procs), CPU: -1, Memory: -1, Requested: int64(procs), Request: request, Limit: -1, Status: 1,
		User: -1, Group: -1, Program: -1, Queue: of.queue, Partition: -1, After: -1, Think: -1,
	}
}

// size draws how many processors a job has.
func (k *kind) size(processors int, s *source) int {
	u := s.uniform()
	if u <= k.serial {
		return 1
	}
	top := max(math.Log2(float64(processors))-k.top, 0)
	low := min(k.low, top)
	bend := max(top-k.bend, low)
	var size float64
	if s.uniform() <= k.first {
		size = s.between(low, bend)
	} else {
		size = s.between(bend, top)
	}
	if u <= k.serial+k.pow2 {
		size = math.Round(size)
	}
	return min(int(math.Round(math.Exp2(size))), processors)
}

// run draws the logarithm of how many seconds a job of so many processors takes.
func (k *kind) run(processors int, s *source) float64 {
	if s.uniform() <= min(max(float64(k.slope*float64(processors))+k.part, 0), 1) {
		return k.short.below(s, maxRun)
	}
	return k.long.below(s, maxRun)
}

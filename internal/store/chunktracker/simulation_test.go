package chunktracker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/sim/eventloop"
)

// simulation is a pool whose machines all want one blob. Each machine sends chunks one
// after another, as fast as its token bucket allows, and receives them over its link.
// Lies, deaths and silence of the tracker are part of it.
type simulation struct {
	simulationOptions
	loop                       eventloop.Loop
	random                     *rand.Rand
	tracker                    *Tracker
	machines                   []simulatedMachine // the last is the server
	done                       []time.Duration    // of honest machines, since each began
	trackerFree, down, up      time.Duration
	plans, seedSent, fallbacks int
	sameRack, otherRack        int
	all                        ChunkSet
}

type simulationOptions struct {
	machines, chunks    int
	liars, deaths, late float64 // fractions of the machines
	outage              bool    // the tracker is silent for a third of the line time
}

// The machines have links of 1 Gbit/s, half of which is for others.
const (
	simulatedRate = 62.5e6 // bytes per second
	simulatedLink = 125e6
	chunkSize     = 4 << 20
	stallTime     = 5 * time.Second
	rackSize      = 40
	planTime      = 20 * time.Microsecond // of the tracker
)

type simulatedMachine struct {
	have             ChunkSet
	latency          time.Duration
	upFree, downFree time.Duration
	began, diesAt    time.Duration
	liar             int // 0: honest; 1: wrong bytes; 2: silence; 3: it has nothing
	streams          int
	results          []Result
	asking, finished bool
	wake             uint32
}

func (m *simulatedMachine) isDead(now time.Duration) bool { return m.diesAt > 0 && now >= m.diesAt }

// The kinds of events.
const (
	eventAsk = iota
	eventPlanned
	eventArrived
)

// arrival is what a source sends, at the end of a chunk.
type arrival struct {
	from    int
	chunks  []int
	next    int
	outcome Outcome
}

func (s *simulation) lineTime() time.Duration {
	return seconds(float64(s.chunks) * chunkSize / simulatedRate)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func newSimulation(o simulationOptions, seed uint64) *simulation {
	s := &simulation{simulationOptions: o, random: rand.New(rand.NewPCG(seed, 1))}
	options := DefaultOptions()
	options.Seed = seed
	s.tracker = New(options)
	s.all = NewChunkSet(o.chunks)
	s.all.Fill(o.chunks)
	s.machines = make([]simulatedMachine, o.machines+1)
	line := s.lineTime()
	for i := range s.machines {
		m := &s.machines[i]
		m.have = NewChunkSet(o.chunks)
		m.latency = time.Millisecond/10 + time.Duration(s.random.ExpFloat64()*float64(time.Millisecond))
		if i == o.machines {
			m.have.Fill(o.chunks)
			break
		}
		switch x := s.random.Float64(); {
		case x < o.liars:
			m.liar = 1 + i%3
			m.have.Fill(o.chunks)
		case x < o.liars+o.deaths:
			m.diesAt = 1 + time.Duration(s.random.Int64N(int64(line)))
		case x < o.liars+o.deaths+o.late:
			m.began = time.Duration(s.random.Int64N(int64(line)))
		}
		s.schedule(m.began+time.Duration(s.random.Int64N(int64(200*time.Millisecond))), i, eventAsk, nil)
	}
	if o.outage {
		s.down, s.up = line/3, line*2/3
	}
	return s
}

// schedule plans an event of a machine. Each of its plans and arrivals replaces the time
// at which it asks next.
func (s *simulation) schedule(at time.Duration, i int, kind uint8, payload any) {
	s.loop.Schedule(eventloop.PlannedEvent{At: at, Place: int32(i), Kind: kind, Generation: s.machines[i].wake,
		Payload: payload})
}

func (s *simulation) id(i int) MachineID {
	if i == len(s.machines)-1 {
		return MachineID{}
	}
	return MachineID{fmt.Sprintf("n%d", i), "m"}
}

func (s *simulation) run(t testing.TB) {
	byID := map[MachineID]int{}
	for i := range s.machines {
		byID[s.id(i)] = i
	}
	for {
		e, ok := s.loop.RunNext()
		if !ok {
			return
		}
		if s.loop.EventCount()%5000 == 0 {
			s.tracker.check(t)
		}
		now, i := s.loop.Now(), int(e.Place)
		m := &s.machines[i]
		if m.isDead(now) {
			continue
		}
		switch e.Kind {
		case eventAsk:
			if e.Generation != m.wake || m.asking || m.finished {
				continue
			}
			m.asking = true
			s.ask(now, i)
		case eventPlanned:
			m.asking = false
			s.start(now, i, byID, e.Payload.(*Plan))
		case eventArrived:
			s.arrive(now, i, e.Payload.(*arrival))
		}
	}
}

// ask sends a request to the tracker, which answers one after another.
func (s *simulation) ask(now time.Duration, i int) {
	m := &s.machines[i]
	if s.outage && now >= s.down && now < s.up {
		s.fallbacks++
		s.schedule(now+2*time.Second, i, eventPlanned, (*Plan)(nil))
		return
	}
	s.plans++
	at := max(now+m.latency, s.trackerFree) + planTime
	s.trackerFree = at
	plan, err := s.tracker.Plan(at, Request{Machine: s.id(i), Address: "a", Rack: fmt.Sprint(i / rackSize), Digest: "d",
		Chunks: s.chunks, Have: m.have, Streams: s.tracker.options.MaxStreams - m.streams, Results: m.results})
	if err != nil {
		panic(err)
	}
	m.results = nil
	if m.liar > 0 { // they only serve
		m.finished = true
		return
	}
	if m.have.Len() == s.chunks {
		m.finished = true
		s.done = append(s.done, now-m.began)
		return
	}
	s.schedule(at+m.latency, i, eventPlanned, &plan)
}

// start fetches what a plan says. Without a plan the server sends a chunk, as long as
// nothing else comes.
func (s *simulation) start(now time.Duration, i int, byID map[MachineID]int, plan *Plan) {
	m := &s.machines[i]
	m.wake++
	if plan == nil {
		plan = &Plan{Wait: seconds(1 + 4*s.random.Float64())}
		if m.streams == 0 {
			plan.Sources = []Source{{Chunks: []int{s.randomMissing(m)}}}
		}
	}
	for _, source := range plan.Sources {
		m.streams++
		s.send(now+m.latency, i, &arrival{from: byID[source.Machine], chunks: source.Chunks})
	}
	if len(m.results) > 0 {
		s.schedule(now, i, eventAsk, nil)
		return
	}
	if m.streams < s.tracker.options.MaxStreams {
		s.schedule(now+plan.Wait, i, eventAsk, nil)
	}
}

func (s *simulation) randomMissing(m *simulatedMachine) int {
	for i := s.random.IntN(s.chunks); ; i = (i + 1) % s.chunks {
		if !m.have.Has(i) {
			return i
		}
	}
}

// send has a source send its next chunk, when those before it have left.
func (s *simulation) send(now time.Duration, to int, a *arrival) {
	from, m := &s.machines[a.from], &s.machines[to]
	at := now
	switch {
	case from.isDead(now) && from.diesAt.Nanoseconds()%2 == 0, from.liar == 3 && !from.isDead(now):
		a.outcome = Missing // or refused
		at += from.latency
	case from.isDead(now), from.liar == 2:
		a.outcome = Slow
		at += stallTime
	case a.from == len(s.machines)-1 && from.upFree > now+time.Second: // too many wait there
		a.outcome = Busy
		at += time.Second
	default:
		line := seconds(chunkSize / simulatedRate)
		begin := max(now, from.upFree)
		from.upFree = begin + line
		m.downFree = max(from.upFree, m.downFree+seconds(chunkSize/simulatedLink))
		at = m.downFree + from.latency
		a.outcome = Arrived
		switch {
		case from.liar == 1:
			a.outcome = Damaged
		case a.from == len(s.machines)-1:
			s.seedSent++
		case a.from/rackSize == to/rackSize:
			s.sameRack++
		default:
			s.otherRack++
		}
		if from.isDead(at) {
			a.outcome, at = Slow, at+stallTime
		}
	}
	s.schedule(at, to, eventArrived, a)
}

// arrive notes a chunk, and asks for more when its source has ended.
func (s *simulation) arrive(now time.Duration, i int, a *arrival) {
	m := &s.machines[i]
	if a.outcome == Arrived {
		m.have.Add(a.chunks[a.next])
		if a.next++; a.next < len(a.chunks) {
			s.send(now, i, a)
			return
		}
	}
	m.streams--
	m.results = append(m.results, Result{s.id(a.from), a.outcome})
	m.wake++
	s.schedule(now, i, eventAsk, nil)
}

// figures returns how long machines took, in line times. copies is what the server sent.
func (s *simulation) figures() (p50, p99, most, copies float64) {
	slices.Sort(s.done)
	line := float64(s.lineTime())
	n := len(s.done)
	return float64(s.done[n/2]) / line, float64(s.done[n*99/100]) / line, float64(s.done[n-1]) / line,
		float64(s.seedSent) / float64(s.chunks)
}

// TestPoolFetches has a pool fetch a blob at once. It fails when plans become worse, for
// which neither the machine nor its load matter.
func TestPoolFetches(t *testing.T) {
	churn := simulationOptions{machines: 240, chunks: 128, liars: 0.01, deaths: 0.05, late: 0.05}
	silent := churn
	silent.outage = true
	for name, x := range map[string]struct {
		options     simulationOptions
		p99, copies float64
	}{
		"quiet":                        {simulationOptions{machines: 240, chunks: 128}, 1.5, 1.5},
		"liars and deaths":             {churn, 1.8, 2},
		"and the tracker falls silent": {silent, 2.2, 4},
		"three machines":               {simulationOptions{machines: 3, chunks: 32}, 1.3, 1.3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSimulation(x.options, 1)
			s.run(t)
			p50, p99, most, copies := s.figures()
			t.Logf("line times: %.2f at the median, %.2f for 99 %%, %.2f at most; the server sent %.2f copies; "+
				"%.0f %% from the own rack; %d plans", p50, p99, most, copies, s.percentNear(), s.plans)
			if p99 > x.p99 || copies > x.copies {
				t.Errorf("99 %% have the blob after %.2f line times, want %.2f; the server sent %.2f copies, want %.2f",
					p99, x.p99, copies, x.copies)
			}
			if want := s.honest(); len(s.done) != want {
				t.Errorf("%d machines have the blob, want %d", len(s.done), want)
			}
		})
	}
}

// percentNear is the part of the chunks from machines that came from the own rack.
func (s *simulation) percentNear() float64 {
	return 100 * float64(s.sameRack) / float64(max(1, s.sameRack+s.otherRack))
}

// honest counts the machines that must have the blob at the end.
func (s *simulation) honest() (n int) {
	for i := range s.machines[:len(s.machines)-1] {
		if m := &s.machines[i]; m.liar == 0 && (m.diesAt == 0 || m.finished) {
			n++
		}
	}
	return n
}

func TestSimulationIsRepeatable(t *testing.T) {
	var digests [2]uint64
	for k := range digests {
		s := newSimulation(simulationOptions{machines: 100, chunks: 32, liars: 0.02, deaths: 0.05, late: 0.05}, 7)
		s.run(t)
		digests[k] = s.loop.Digest()
	}
	if digests[0] != digests[1] {
		t.Errorf("the same seed ran to %x and to %x", digests[0], digests[1])
	}
}

// BenchmarkPool has 10,000 machines in racks of 40 fetch 1 GB. 1 % lie, 5 % die, and 5 %
// come later. Times are in line times.
func BenchmarkPool(b *testing.B) {
	for b.Loop() {
		s := newSimulation(simulationOptions{machines: 10000, chunks: 256, liars: 0.01, deaths: 0.05, late: 0.05}, 1)
		s.run(b)
		p50, p99, most, copies := s.figures()
		b.ReportMetric(p50, "p50/line")
		b.ReportMetric(p99, "p99/line")
		b.ReportMetric(most, "max/line")
		b.ReportMetric(copies, "copies")
		b.ReportMetric(s.percentNear(), "%rack")
		b.ReportMetric(float64(s.plans)/float64(len(s.done)), "plans/machine")
	}
}

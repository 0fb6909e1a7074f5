package autoscale

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/schedd/queue/update"
)

var start = time.Unix(1_000_000, 0)

func testPolicy() *Policy {
	p := DefaultPolicy()
	p.Min, p.Max, p.Source, p.Target, p.Metric = 1, 20, TaskMetric, 10, "in_flight"
	return &p
}

// ready are ready tasks with these values; a value below 0 is not known.
func ready(values ...float64) (m Measurement) {
	for _, v := range values {
		m.Tasks = append(m.Tasks, TaskMeasure{Ready: true, Known: v >= 0, Value: v})
	}
	return m
}

// unready adds tasks that are not ready.
func (m Measurement) unready(n int) Measurement {
	m.Tasks = append(m.Tasks, make([]TaskMeasure, n)...)
	return m
}

// long is a past in which so many tasks were enough for a long time.
func long(count int) Past {
	return Past{Recommended: []Recommendation{{start.Add(-time.Hour + time.Second).UnixNano(), count}}}
}

// changed is a past in which a task was added so long ago.
func changed(ago time.Duration) Past {
	return Past{Recommended: long(2).Recommended, Changes: []Change{{start.Add(-ago).UnixNano(), 1, 2}}}
}

// TestDecide checks decisions with their numbers.
func TestDecide(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy func(p *Policy)
		m      Measurement
		past   Past
		want   int
		reason string
	}{
		{"grows at once", nil, ready(15, 25), long(1), 4,
			"in_flight is 40 in 2 ready tasks, 20 each, and 10 is the target: 4 wanted"},
		{"within the tolerance", nil, ready(11, 11, 11, 11), long(4), 4,
			"in_flight is 44 in 4 ready tasks, 11 each, and 10 is the target: 4 wanted"},
		{"beyond the tolerance", nil, ready(12, 12, 12, 12), long(4), 5, "5 wanted"},
		{"shrinks after the window", nil, ready(1, 1, 1, 1), long(1), 1, "1 wanted"},
		{"does not shrink within the window", nil, ready(1, 1, 1, 1),
			Past{Recommended: []Recommendation{{start.Add(-4 * time.Minute).UnixNano(), 3}}}, 3,
			"1 wanted; 3 now, as 3 were needed within the last 5m0s"},
		{"knows nothing of the time before", nil, ready(1, 1, 1, 1), Past{}, 4,
			"4 now, as 4 were needed within the last 5m0s"},
		{"never shrinks on missing data", nil, ready(0, 0, 0, -1), long(1), 4,
			"in_flight of 1 ready tasks is not known, so that none is stopped"},
		{"missing tasks count as idle when it grows", nil, ready(30, -1, -1), long(3), 3,
			"tasks that are not ready may take their part"},
		{"but it grows if that is not enough", nil, ready(70, -1, -1), long(3), 7, "7 wanted"},
		{"without any data", nil, ready(-1, -1), long(1), 2, "in_flight of no ready task is known"},
		{"tasks that are not ready are left out", nil, ready(15, 15).unready(1), long(3), 3,
			"tasks that are not ready may take their part"},
		{"without a ready task", nil, Measurement{}.unready(3), long(3), 3, "in_flight of no ready task is known"},
		{"NaN, infinite and negative are no values", nil, ready(math.NaN(), math.Inf(1), math.Inf(-1)), long(1), 3,
			"in_flight of no ready task is known"},
		{"huge values end at max", func(p *Policy) { p.UpBy, p.UpBySet = update.Amount{Number: 100}, true },
			ready(1e308, 1e308), long(2), 20, "20 wanted, which is max"},
		{"adds no more than as many again, or 4", nil, ready(100, 100), long(2), 6,
			"20 wanted; 6 now, as no more are added within 15s"},
		{"counts what was added in the period", nil, ready(100, 100),
			changed(5 * time.Second), 5,
			"no more are added within 15s"},
		{"not what was added before", nil, ready(100, 100), changed(time.Minute), 6, ""},
		{"stops no more than allowed", func(p *Policy) { p.DownBy = update.Amount{Number: 1} }, ready(1, 1, 1, 1),
			long(1), 3, "1 wanted; 3 now, as no more are stopped within 15s"},
		{"grows after the window up", func(p *Policy) { p.UpWindow = time.Minute }, ready(100),
			Past{Recommended: []Recommendation{{start.Add(-time.Second).UnixNano(), 1}}}, 1,
			"10 wanted; 1 now, as fewer were enough within the last 1m0s"},
		{"above max", nil, ready(make([]float64, 30)...), Past{}, 20, "min is 1 and max is 20"},
		{"below min", func(p *Policy) { p.Min = 3 }, ready(5), Past{}, 3, "min is 3 and max is 20"},
		{"keeps ready tasks", nil, Measurement{Tasks: []TaskMeasure{{}, {Ready: true, Known: true, Value: 10},
			{Ready: true, Known: true, Value: 10}, {Ready: true, Known: true, Value: 0}}}, long(1), 3,
			"2 wanted; 3 now, as tasks with lower indexes are not ready"},
		{"stops tasks that are not ready", nil, ready(8, 8).unready(3), long(2), 2, "2 wanted"},
		{"cores", func(p *Policy) { p.Source, p.Target = CPUUse, 0.5 }, ready(0.9, 0.7), long(2), 4,
			"the use of cores is 80% in 2 ready tasks, and 50% is the target: 4 wanted"},
		{"waiting tasks", func(p *Policy) { p.Source = WaitingTasks }, Measurement{Waiting: 35}.unready(2), long(2), 4,
			"35 tasks wait, and one is for 10: 4 wanted"},
		{"no waiting tasks", func(p *Policy) { p.Source = WaitingTasks }, Measurement{}.unready(2), long(1), 1,
			"0 tasks wait, and one is for 10: 1 wanted"},
	} {
		p := testPolicy()
		if tt.policy != nil {
			tt.policy(p)
		}
		got := Decide(p, len(tt.m.Tasks), tt.m, tt.past, start)
		if got.Count != tt.want || !strings.Contains(got.Reason, tt.reason) {
			t.Errorf("%s: %d tasks: %s; want %d: %s", tt.name, got.Count, got.Reason, tt.want, tt.reason)
		}
	}
}

// TestProblems checks what makes no sense in a policy.
func TestProblems(t *testing.T) {
	if list := testPolicy().Problems(); len(list) > 0 {
		t.Fatalf("got %v", list)
	}
	for field, spoil := range map[string]func(p *Policy){
		"min":         func(p *Policy) { p.Min = 21 },
		"max":         func(p *Policy) { p.Max = 0 },
		"target":      func(p *Policy) { p.Target = math.NaN() },
		"tolerance":   func(p *Policy) { p.Tolerance = 1 },
		"up_window":   func(p *Policy) { p.UpWindow = 2 * time.Hour },
		"down_window": func(p *Policy) { p.DownWindow = -1 },
		"period":      func(p *Policy) { p.Period = 0 },
		"every":       func(p *Policy) { p.Every = 0 },
		"up_by":       func(p *Policy) { p.UpBySet = true },
		"down_by":     func(p *Policy) { p.DownBy = update.Amount{} },
	} {
		p := testPolicy()
		spoil(p)
		if list := p.Problems(); len(list) != 1 || list[0].Field != field || list[0].Cause == "" || list[0].Cure == "" {
			t.Errorf("%s: got %v", field, list)
		}
	}
}

// randomPolicy draws a policy without problems.
func randomPolicy(random *rand.Rand) *Policy {
	p := testPolicy()
	p.Min = 1 + random.IntN(5)
	p.Max = p.Min + random.IntN(20)
	p.Target, p.Tolerance = 1+random.Float64()*50, random.Float64()/2
	p.UpWindow, p.DownWindow = time.Duration(random.IntN(120))*time.Second, time.Duration(random.IntN(600))*time.Second
	p.Period = time.Duration(1+random.IntN(120)) * time.Second
	p.UpBySet, p.UpBy = random.IntN(2) == 0, update.Amount{Number: 1 + random.IntN(5)}
	if random.IntN(2) == 0 {
		p.DownBy = update.Amount{Percent: 1 + random.Float64()*99}
	}
	return p
}

// TestBounds checks that the number of tasks is within min and max whatever is measured.
// It grows no faster than allowed, and does not shrink for want of data.
func TestBounds(t *testing.T) {
	for seed := range uint64(300) {
		if outside(t, seed) {
			t.Fatalf("seed %d: the number of tasks is outside of min and max", seed)
		}
	}
}

// outside reports whether random measurements bring a service outside of its bounds.
func outside(t *testing.T, seed uint64) bool {
	random := rand.New(rand.NewPCG(seed, 1))
	p := randomPolicy(random)
	count, past, now := p.Min, Past{}, start
	for range 100 {
		m, missing := randomMeasurement(random, p, count)
		d := Decide(p, count, m, past, now)
		if d.Count < p.Min || d.Count > p.Max {
			return true
		}
		if again := Decide(p, count, m, past, now); again.Count != d.Count || again.Reason != d.Reason {
			t.Fatalf("seed %d: asked twice: %+v, %+v", seed, d, again)
		}
		if d.Count < count && missing && d.Wanted >= count {
			t.Fatalf("seed %d: it shrinks to %d though %s", seed, d.Count, d.Reason)
		}
		if d.Count > count && d.Count > p.upLimit(count) {
			t.Fatalf("seed %d: it grows from %d to %d", seed, count, d.Count)
		}
		if past.Recommended = d.Recommended; d.Count != count {
			past.Changes = append(Prune(past.Changes, now.UnixNano()), Change{now.UnixNano(), count, d.Count})
		}
		count, now = d.Count, now.Add(time.Duration(random.IntN(40)-2)*time.Second)
	}
	return false
}

// randomMeasurement draws a measurement, and reports whether one of a ready task misses.
func randomMeasurement(random *rand.Rand, p *Policy, count int) (m Measurement, missing bool) {
	for range count {
		v := TaskMeasure{Ready: random.IntN(5) > 0, Known: random.IntN(10) > 0,
			Value: random.ExpFloat64() * p.Target}
		if random.IntN(30) == 0 {
			v.Value = []float64{math.NaN(), math.Inf(1), -1, math.MaxFloat64}[random.IntN(4)]
		}
		missing = missing || v.Ready && !(v.Known && isValue(v.Value))
		m.Tasks = append(m.Tasks, v)
	}
	return m, missing
}

// TestNoFlapping checks that a constant load ends at the right number of tasks, and stays
// there, however it is spread.
func TestNoFlapping(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 2))
		p := randomPolicy(random)
		load := random.Float64() * p.Target * float64(p.Max) * 1.2
		count, past, now := p.Min+random.IntN(p.Max-p.Min+1), Past{}, start
		var trace []int
		for range 400 {
			m := Measurement{}
			rest := load
			for i := range count {
				part := rest / float64(count-i)
				if random.IntN(2) == 0 && i+1 < count {
					part *= random.Float64()
				}
				rest -= part
				m.Tasks = append(m.Tasks, TaskMeasure{Ready: true, Known: true, Value: part})
			}
			d := Decide(p, count, m, past, now)
			if past.Recommended = d.Recommended; d.Count != count {
				past.Changes = append(Prune(past.Changes, now.UnixNano()), Change{now.UnixNano(), count, d.Count})
			}
			count, now = d.Count, now.Add(p.Every)
			trace = append(trace, count)
		}
		average := load / float64(count)
		right := p.Clamp(int(math.Ceil(load/p.Target - 1e-9)))
		within := average >= p.Target*(1-p.Tolerance)-1e-6 && average <= p.Target*(1+p.Tolerance)+1e-6
		if count != right && !within {
			t.Fatalf("seed %d: %d tasks for a load of %g, want %d: %v", seed, count, load, right, trace)
		}
		for i := 1; i < len(trace); i++ {
			first, turned := trace[1]-trace[0], trace[i]-trace[i-1]
			if i > 1 && turned != 0 && first*turned < 0 {
				t.Fatalf("seed %d: it turns back: %v", seed, trace)
			}
		}
		if trace[len(trace)-1] != trace[len(trace)-100] {
			t.Fatalf("seed %d: it does not come to rest: %v", seed, trace)
		}
	}
}

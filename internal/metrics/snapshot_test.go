package metrics

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/expfmt"
)

var roostTime = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// TestLargePool fills each registry with a snapshot of a large pool. It has 10,000 nodes
// of 300 classes, 1,000 users in 700 groups, and 100,000 jobs. No registry may exceed
// its bound.
func TestLargePool(t *testing.T) {
	for _, part := range parts {
		t.Run(part, func(t *testing.T) {
			r := NewRegistry(part)
			fillPart(t, r)
			all := gather(t, r)
			if n := countSeries(all); n > r.series || n > maxSeries(part) {
				t.Errorf("%d series; %d were declared, and %d are allowed", n, r.series, maxSeries(part))
			}
			for _, f := range r.Families() {
				if all[f.Name] == nil {
					t.Errorf("%s is not exported", f.Name)
				}
			}
			if len(all) != len(r.Families()) {
				t.Errorf("%d families are exported, and %d declared", len(all), len(r.Families()))
			}
		})
	}
}

// BenchmarkReadLargePool reads the metrics of each daemon in a large pool. The aim is at
// most 5 ms.
func BenchmarkReadLargePool(b *testing.B) {
	for _, part := range parts {
		b.Run(part, func(b *testing.B) {
			r := NewRegistry(part)
			fillPart(b, r)
			for b.Loop() {
				var page bytes.Buffer
				for _, f := range gather(b, r) {
					if _, err := expfmt.MetricFamilyToText(&page, f); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// fillPart registers the metrics of a daemon with a snapshot of a large pool.
func fillPart(t testing.TB, r *Registry) {
	random := rand.New(rand.NewPCG(1, 2))
	switch r.part {
	case "schedd":
		s := NewSchedd(r, t.TempDir())
		publish(s.Snapshots, scheddSnapshot(random))
		for range 100_000 {
			s.Submits.Inc(random.IntN(5))
			s.AttemptsStarted.Inc(random.IntN(BandCount))
			s.AttemptsEnded.Inc(random.IntN(BandCount), random.IntN(CauseCount))
			s.WaitTime.Observe(time.Duration(random.Int64N(int64(100*time.Hour))), random.IntN(BandCount))
			s.StartError.Observe(time.Duration(random.Int64N(int64(time.Hour))), random.IntN(len(startCertainties)))
			s.RunTime.Observe(time.Duration(random.Int64N(int64(100*time.Hour))), random.IntN(BandCount))
			s.CommitTime.Observe(time.Duration(random.Int64N(int64(time.Second))))
		}
	case usersPart:
		publish(NewUsers(r).Snapshots, manyUsers(1000))
	case "negotiator":
		n := NewNegotiator(r, t.TempDir())
		s := NegotiatorSnapshot{IsLeader: true, Machines: 10_000, GroupCores: map[string]float64{}}
		for i := range 700 {
			s.GroupCores[fmt.Sprintf("g%d", i)] = float64(i)
		}
		s.GuestCores, s.GuestRequests, s.GuestRefusals = manyPools(), manyPools(), manyPools()
		publish(n.Snapshots, s)
		behind := map[string]float64{}
		for i := range 20 {
			behind[fmt.Sprintf("n%d", i)] = 1
		}
		publish(n.Replicas, ReplicaSnapshot{Behind: behind})
	case "collector":
		c := NewCollector(r)
		s := CollectorSnapshot{Ads: map[string]float64{}}
		for i := range s.Nodes {
			s.Nodes[i] = map[string]float64{}
		}
		for i := range s.Cores {
			s.Cores[i] = map[string]float64{}
		}
		for i := range 10_000 {
			class := fmt.Sprintf("class %d\n\"\\", i%300)
			s.Nodes[random.IntN(len(s.Nodes))][class]++
			s.Cores[random.IntN(len(s.Cores))][class] += 64
			s.Ads[fmt.Sprintf("Type%d", i%40)]++
		}
		publish(c.Snapshots, s)
	case "startd":
		publish(NewStartd(r).Snapshots, StartdSnapshot{BatchTasks: 5})
	case "web":
		w := NewWeb(r)
		for range 100_000 {
			w.ObserveRequest(time.Duration(random.Int64N(int64(time.Second))), random.IntN(12)-1, random.IntN(600))
			w.Limited.Inc(random.IntN(12))
			w.CountLoginFailure(fmt.Sprint(random.IntN(10)))
		}
	case "accountant":
		ratio := 0.001
		s := AccountantSnapshot{Lag: map[string]time.Duration{}, LedgerDifference: &ratio}
		for i := range 300 {
			s.Lag[fmt.Sprintf("s%d", i)] = time.Duration(i) * time.Second
		}
		publish(NewAccountant(r, t.TempDir()).Snapshots, s)
	case "checkpoint_server":
		publish(NewCheckpointServer(r, t.TempDir()).Snapshots,
			CheckpointServerSnapshot{Blobs: 10_000, MaxBytes: 1 << 50, HasObjects: true})
	}
}

// manyPools is more pools than are exported.
func manyPools() map[string]float64 {
	all := map[string]float64{}
	for i := range 2 * maxFlockPools {
		all[fmt.Sprintf("pool%d", i)] = float64(i)
	}
	return all
}

func scheddSnapshot(random *rand.Rand) (s ScheddSnapshot) {
	s.TasksElsewhere = manyPools()
	for range 100_000 {
		s.Tasks[random.IntN(BandCount)][random.IntN(StateCount)]++
		s.WaitingTasks[random.IntN(WaitReasonCount)]++
		s.Claims[random.IntN(len(s.Claims))]++
		s.ServiceTasks[random.IntN(len(s.ServiceTasks))]++
		s.Updates[random.IntN(len(s.Updates))]++
		s.ScaledTasks[random.IntN(2)]++
		s.SizedCores[random.IntN(2)]++
		s.SizedMemory[random.IntN(2)]++
	}
	return s
}

// publish publishes a snapshot as the owner would, again and again.
func publish[T any](p *Published[T], s T) {
	p.OnStale(func() { p.Refresh(time.Now(), func() T { return s }) })
}

// manyUsers returns what n users have; u5 has 5 cores, and waits with 5 tasks.
func manyUsers(n int) UserSnapshot {
	s := UserSnapshot{}
	for i := range n {
		*s.Of(fmt.Sprintf("u%d", i)) = UserAmounts{WaitingTasks: i, RunningTasks: 1, Cores: float64(i)}
	}
	return s
}

// TestUsers checks that all families of a page of users have the same users. A name of
// another system's cannot break the page.
func TestUsers(t *testing.T) {
	r := newRegistry(usersPart)
	s := manyUsers(1000)
	s.Of("bad\xff\n\"}").Cores = 5000
	publish(NewUsers(r).Snapshots, s)
	all := gather(t, r)
	for family, want := range map[string]map[string]float64{
		"waiting_tasks": {"u999": 999, "bad\n\"}": 0, OtherValue: 800 * 801 / 2},
		"running_tasks": {"u801": 1, "bad\n\"}": 0, OtherValue: 801},
		"cores":         {"u999": 999, "bad\n\"}": 5000, OtherValue: 800 * 801 / 2},
	} {
		f := all["roost_schedd_user_"+family]
		if len(f.GetMetric()) != maxUsers+1 {
			t.Errorf("%s has %d series", family, len(f.GetMetric()))
		}
		for user, value := range want {
			if m := series(f, map[string]string{"user": user}); m == nil || m.GetGauge().GetValue() != value {
				t.Errorf("%s of %q: %v, want %v", family, user, m, value)
			}
		}
	}
}

// TestHighest checks that the rest of the values of lags is not a sum.
func TestHighest(t *testing.T) {
	r := NewRegistry("accountant")
	fillPart(t, r)
	lags := gather(t, r)["roost_accountant_lag_seconds"]
	for name, want := range map[string]float64{"s299": 299, "s200": 200, OtherValue: 199} {
		if got := series(lags, map[string]string{"source": name}).GetGauge().GetValue(); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestWebRequests checks which series count a request.
func TestWebRequests(t *testing.T) {
	r := NewRegistry("web")
	w := NewWeb(r)
	for class, status := range []int{404, 200, 303, 500, 429, 304, 200, 200, 101} {
		w.ObserveRequest(time.Millisecond, class, status)
	}
	for class, status := range map[string]string{"none": "4xx", "reads": "2xx", "writes": "3xx", "expensive": "5xx",
		"logins": "4xx", "files": "3xx", "simulations": "2xx"} {
		m := series(gather(t, r)["roost_web_http_seconds"], map[string]string{"class": class, "status": status})
		if got := m.GetHistogram().GetSampleCount(); got != 1 {
			t.Errorf("%s %s: %d requests, want 1", class, status, got)
		}
	}
	w.CountLoginFailure("oidc")
	failures := gather(t, r)["roost_web_login_failures_total"]
	if got := series(failures, map[string]string{"way": "oidc"}).GetCounter().GetValue(); got != 1 {
		t.Errorf("%v failed logins, want 1", got)
	}
}

func TestLargest(t *testing.T) {
	byName := map[string]float64{"a": 1, "b": 5, "c": 3, "other": 2, "": 7, strings.Repeat("x", 100): 8, "bad\xff": 6}
	got := sumByLabel(byName, labelsOfLargest(byName, 4))
	want := map[string]float64{OtherValue: 1 + 3 + 2 + 7, "bad": 6, "b": 5, strings.Repeat("x", 64): 8}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := sumByLabel(nil, labelsOfLargest(nil, 3)); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// TestSnapshotsOnlyForReaders follows an owner. It makes snapshots for as long as
// somebody reads, at most one a second, and a read waits for it only when the last one is
// old.
func TestSnapshotsOnlyForReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry("startd")
		p := NewStartd(r).Snapshots
		var made atomic.Int64
		refresh := func() {
			p.Refresh(time.Now(), func() StartdSnapshot { return StartdSnapshot{BatchTasks: int(made.Add(1))} })
		}
		events := make(chan func(), 1)
		p.OnStale(func() { events <- refresh })
		stop := make(chan struct{})
		go func() { // the owner
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-stop:
					return
				case e := <-events:
					e()
				case <-tick.C:
					refresh()
				}
			}
		}()
		tasks := func() float64 {
			batch := map[string]string{"class": "batch"}
			return series(gather(t, r)["roost_startd_tasks"], batch).GetGauge().GetValue()
		}
		time.Sleep(time.Hour)
		if n := made.Load(); n != 0 {
			t.Fatalf("%d snapshots, and nobody reads", n)
		}
		if got := tasks(); got != 1 {
			t.Fatalf("the first read shows %v, want a snapshot made for it", got)
		}
		time.Sleep(time.Minute)
		before := made.Load()
		if before < 55 || before > 62 {
			t.Errorf("%d snapshots in a minute, want one a second", before)
		}
		if got := tasks(); int64(got) < before {
			t.Errorf("a read shows snapshot %v of %d", got, before)
		}
		time.Sleep(time.Hour)
		if n := made.Load() - before; n > 310 {
			t.Errorf("%d snapshots in the hour after the last read, want them to end after 5 minutes", n)
		}
		close(stop)
		synctest.Wait()
		began := time.Now()
		p.OnStale(func() {})
		if all := gather(t, r); all["roost_startd_tasks"] != nil || all["roost_startd_oom_kills_total"] == nil {
			t.Errorf("an owner that does not answer: %v", all)
		}
		if waited := time.Since(began); waited != snapshotTimeout {
			t.Errorf("the read waited for %v, want %v", waited, snapshotTimeout)
		}
	})
}

package store

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// lastEntries returns the jobs and the last entry of each attempt of a feed.
func lastEntries(feed []accounting.FeedEntry) (map[accounting.JobKey]*accounting.JobEntry,
	map[accounting.AttemptKey]*accounting.AttemptEntry) {
	jobs, attempts := map[accounting.JobKey]*accounting.JobEntry{}, map[accounting.AttemptKey]*accounting.AttemptEntry{}
	for _, e := range feed {
		if e.Job != nil {
			jobs[e.Job.JobKey] = e.Job
		}
		if e.Attempt != nil {
			attempts[e.Attempt.AttemptKey] = e.Attempt
		}
	}
	return jobs, attempts
}

// ledgerOf returns what a negotiator's ledger says at some times. It keeps the ledger's
// own accounts, and tells them at each change what everybody holds.
func ledgerOf(feed []accounting.FeedEntry, machines []accounting.MachineEvent,
	times []accounting.Millis) []accounting.LedgerSample {
	type change struct {
		at    accounting.Millis
		who   fairshare.Submitter
		more  roost.Resources
		total roost.Resources
	}
	var changes []change
	jobs, attempts := lastEntries(feed)
	for _, a := range attempts {
		job := jobs[a.JobKey]
		who := fairshare.Submitter{Owner: job.Owner, Group: job.Group}
		for _, span := range a.HeldSpans(workloadEnd) {
			changes = append(changes, change{at: span.From, who: who, more: span.Held},
				change{at: span.To, who: who, more: roost.Resources{}.Sub(span.Held)})
		}
	}
	for _, m := range machines {
		if m.What == accounting.MachineAdded {
			changes = append(changes, change{at: m.Time, total: m.Capacity})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return int(a.at - b.at) })
	ledger, total := fairshare.NewAccountant(0), roost.Resources{}
	held := map[fairshare.Submitter]roost.Resources{}
	var samples []accounting.LedgerSample
	for len(times) > 0 {
		if len(changes) == 0 || changes[0].at > times[0] {
			sample := accounting.LedgerSample{At: times[0]}
			for _, who := range ledger.Submitters() {
				used := ledger.CoreSeconds(times[0].Time(), who)
				sample.Used = append(sample.Used, accounting.SubmitterUse{Used: int64(math.Round(used * 1000)),
					Submitter: accounting.Submitter{Owner: who.Owner, Group: who.Group}})
			}
			samples, times = append(samples, sample), times[1:]
			continue
		}
		c := changes[0]
		changes = changes[1:]
		total, held[c.who] = total.Add(c.total), held[c.who].Add(c.more)
		for who := range held {
			ledger.SetUsage(c.at.Time(), who, fairshare.CoresWorth(held[who], total))
		}
	}
	return samples
}

// compareAll stores a feed and the samples of a ledger, and returns the comparisons.
func compareAll(t *testing.T, o Options, feed []accounting.FeedEntry, samples []accounting.LedgerSample,
) []accounting.Reconciliation {
	t.Helper()
	s, ctx := openStore(t, o), t.Context()
	must(t, s.IngestMachines(ctx, testMachines()))
	for i := range samples {
		must(t, s.AddLedgerSample(ctx, &samples[i]))
	}
	last := samples[len(samples)-1].At
	// every other attempt that runs at the end is in the list alone
	jobs, attempts := lastEntries(feed)
	var running []accounting.RunningAttempt
	alone := map[accounting.AttemptKey]bool{}
	for key, a := range attempts {
		if a.Assigned <= last && a.Ended > last {
			job := jobs[key.JobKey]
			r := accounting.RunningAttempt{Attempt: *a,
				Submitter: accounting.Submitter{Owner: job.Owner, Group: job.Group}}
			r.Attempt.Ended, r.Attempt.Wall, r.Attempt.Segments = 0, 0, nil
			running, alone[key] = append(running, r), (a.Seq+uint64(a.Index))%2 == 0
		}
	}
	if len(running) < 2 {
		t.Fatalf("%d attempts run at the end", len(running))
	}
	ingestAll(t, s, 1, renumber(slices.DeleteFunc(slices.Clone(feed), func(e accounting.FeedEntry) bool {
		return e.Attempt != nil && alone[e.Attempt.AttemptKey]
	})), 500)
	reconcile := func(at accounting.Millis, want int) {
		t.Helper()
		got, err := s.Reconcile(ctx, at, running, last+accounting.HourMillis)
		must(t, err)
		if got != want {
			t.Fatalf("got %d comparisons, want %d", got, want)
		}
	}
	reconcile(last, 0) // the feed is not complete
	must(t, s.Advance(ctx, testSource(1), testHost(1), last))
	reconcile(last-1, len(samples)-2)
	reconcile(last, 1)
	reconcile(last, 0)
	status, err := s.Reporter(ctx).LedgerStatus()
	must(t, err)
	if want := (accounting.LedgerStatus{Samples: 1, First: last, Last: last, Compared: last}); status != want {
		t.Errorf("got %+v, want %+v", status, want)
	}
	list, err := s.Reporter(ctx).Reconciliations(accounting.TimeRange{})
	must(t, err)
	return list
}

// TestReconcile compares the accounts with a ledger that saw the same attempts. Memory
// dominates some, machines come, and samples are seconds or many hours apart. Then it
// holds that an attempt that is missing, or charged to somebody else, is found.
func TestReconcile(t *testing.T) {
	t.Parallel()
	feed := testFeed(1, 60)
	times := []accounting.Millis{workloadStart + 12345}
	for _, pause := range []time.Duration{time.Hour, 7 * time.Minute, 26 * time.Hour, time.Second, 20 * time.Hour} {
		times = append(times, times[len(times)-1]+accounting.Millis(pause.Milliseconds()))
	}
	samples := ledgerOf(feed, testMachines(), times)
	whole := accounting.TimeRange{From: times[0], To: times[len(times)-1]}
	jobs, attempts := lastEntries(feed)
	key := longestWithin(attempts, whole)
	other := slices.Clone(feed)
	for i, e := range other {
		if e.Job != nil && e.Job.JobKey == key.JobKey {
			other[i].Job = clone(*e.Job)
			other[i].Job.Owner = "mallory"
		}
	}
	lost := slices.DeleteFunc(slices.Clone(feed), func(e accounting.FeedEntry) bool {
		return e.Attempt != nil && e.Attempt.AttemptKey == key
	})
	owner := accounting.Submitter{Owner: jobs[key.JobKey].Owner, Group: jobs[key.JobKey].Group}
	onEngines(t, func(t *testing.T, options func() Options) {
		list := compareAll(t, options(), feed, samples)
		for _, c := range list {
			if d := max(c.Held-c.Ledger, c.Ledger-c.Held); d > 5 || c.Owner == "" || c.Made == 0 {
				t.Errorf("got %+v", c)
			}
		}
		sum := accounting.SumReconciliations(list)
		if sum.Warns() || sum.Range.To != whole.To || sum.Ledger < int64(10*accounting.HourMillis) {
			t.Errorf("got %+v", sum)
		}
		for name, planted := range map[string][]accounting.FeedEntry{"lost": renumber(lost), "other owner": other} {
			list := compareAll(t, options(), planted, samples)
			if sum := accounting.SumReconciliations(list); !sum.Warns() {
				t.Errorf("%s: got %+v", name, sum)
			}
			found := false
			for _, c := range list {
				found = found || c.Submitter == owner && c.Held < c.Ledger-c.Ledger/1000
			}
			if !found {
				t.Errorf("%s: %v has no difference in %+v", name, owner, list)
			}
		}
	})
}

// longestWithin returns the attempt that held most within a range, alone in what it held.
func longestWithin(attempts map[accounting.AttemptKey]*accounting.AttemptEntry, r accounting.TimeRange) (
	best accounting.AttemptKey) {
	most := int64(0)
	for _, a := range slices.SortedFunc(maps.Values(attempts), func(a, b *accounting.AttemptEntry) int {
		return int(a.Assigned - b.Assigned)
	}) {
		if n := a.Wall * int64(a.Held.CPU); a.Assigned > r.From && a.Ended < r.To && n > most {
			best, most = a.AttemptKey, n
		}
	}
	return best
}

func renumber(feed []accounting.FeedEntry) []accounting.FeedEntry {
	for i := range feed {
		feed[i].Number = uint64(i + 1)
	}
	return feed
}

// TestReconcileReset holds that a submitter whose use was reset is not compared. A schedd
// that is away delays comparisons by three days at most.
func TestReconcileReset(t *testing.T) {
	onEngines(t, func(t *testing.T, options func() Options) {
		s, ctx := openStore(t, options()), t.Context()
		ann, bob := accounting.Submitter{Owner: "ann"}, accounting.Submitter{Owner: "bob", Group: "physics"}
		for i, used := range [][2]int64{{1000, 2000}, {0, 2500}} {
			must(t, s.AddLedgerSample(ctx, &accounting.LedgerSample{At: workloadStart + accounting.Millis(i)*1000,
				Used: []accounting.SubmitterUse{{Submitter: ann, Used: used[0]}, {Submitter: bob, Used: used[1]}}}))
		}
		must(t, s.Advance(ctx, testSource(1), testHost(1), workloadStart+999))
		n, err := s.Reconcile(ctx, workloadStart+1000, nil, workloadStart+closeDelay+999)
		if must(t, err); n != 0 {
			t.Errorf("got %d comparisons though a feed is not complete", n)
		}
		n, err = s.Reconcile(ctx, workloadStart+1000, nil, workloadStart+closeDelay+1000)
		must(t, err)
		list, err := s.Reporter(ctx).Reconciliations(accounting.TimeRange{})
		must(t, err)
		if n != 1 || len(list) != 1 || list[0].Submitter != bob || list[0].Ledger != 500 || list[0].Held != 0 {
			t.Errorf("got %d, %+v", n, list)
		}
		if err := s.AddLedgerSample(ctx, &accounting.LedgerSample{At: 5}); err == nil {
			t.Error("a sample of 1970 is stored")
		}
	})
}

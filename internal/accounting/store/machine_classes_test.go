package store

import (
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// classedAttempt returns the entries of a job of one core that ran for an hour on a node.
func classedAttempt(seq uint64, node string, started accounting.Millis) []accounting.FeedEntry {
	job := accounting.JobEntry{
		JobKey: accounting.JobKey{Month: accounting.MonthOf(started), Source: testSource(1), Seq: seq},
		Host:   testHost(1), Owner: "ann", Tasks: 1, Submitted: started, Eligible: started,
		Ended: started + accounting.HourMillis, Request: roost.Resources{CPU: 1000},
	}
	return []accounting.FeedEntry{{Number: 2*seq - 1, Job: &job}, {Number: 2 * seq, Attempt: &accounting.AttemptEntry{
		AttemptKey: accounting.AttemptKey{JobKey: job.JobKey, Attempt: 1}, Node: node, AppClass: "gpu",
		Assigned: started, Started: started, Ended: job.Ended, Held: job.Request,
		Wall: int64(accounting.HourMillis), Useful: int64(accounting.HourMillis), Cause: accounting.EndedExit,
	}}}
}

func classEvent(node, class string, at accounting.Millis, what accounting.MachineChange) accounting.MachineEvent {
	return accounting.MachineEvent{Node: node, Class: class, Time: at, What: what,
		Capacity: roost.Resources{CPU: 8000}}
}

// classRate is a rate of 1 unit for a core-hour. It is 10 on the class gpu and a half on
// the class old.
func classRate() accounting.Rate {
	return accounting.Rate{From: 1, Rule: accounting.RateSum, CoreHour: 1_000_000,
		BandPermille:  [4]int64{1000, 1000, 1000, 1000},
		ClassPermille: map[string]int64{"gpu": 10_000, "old": 500}}
}

// TestRatesOfClasses charges attempts on machines of two classes at two rates. The app
// class of a job, which here has the name of one of them, does not count.
func TestRatesOfClasses(t *testing.T) {
	begin := accounting.NewMonth(2026, 11).Start() + accounting.DayMillis
	month, hour := accounting.MonthOf(begin), accounting.HourMillis
	onEngines(t, func(t *testing.T, options func() Options) {
		o := options()
		s, ctx := openStore(t, o), t.Context()
		must(t, s.AddRate(ctx, classRate()))
		ingest := func(entries ...accounting.FeedEntry) {
			t.Helper()
			must(t, s.Ingest(ctx, testSource(1), testHost(1), entries))
		}
		wantUnits := func(when string, want accounting.MicroUnits) {
			t.Helper()
			compute(t, s, begin+accounting.DayMillis)
			if got := statementSum(t, s.Reporter(ctx), month); got != want*100_000 {
				t.Errorf("%s: charged %d tenths of a unit, want %d", when, got/100_000, want)
			}
		}
		must(t, s.IngestMachines(ctx, []accounting.MachineEvent{
			classEvent("fast", "gpu", begin-hour, accounting.MachineAdded),
			classEvent("plain", "old", begin-hour, accounting.MachineAdded)}))
		ingest(append(classedAttempt(1, "fast", begin), classedAttempt(2, "plain", begin)...)...)
		wantUnits("two classes", 100+5)

		ingest(append(classedAttempt(3, "new", begin), classedAttempt(4, "plain", begin+3*hour)...)...)
		wantUnits("a machine that nobody has seen", 100+5+10+5)

		// It is seen when its attempt has ended. Another changed before its second one.
		must(t, s.IngestMachines(ctx, []accounting.MachineEvent{
			classEvent("new", "gpu", begin+2*hour, accounting.MachineAdded),
			classEvent("plain", "gpu", begin+2*hour, accounting.MachineUpdated)}))
		wantUnits("late news of machines", 100+5+100+100)

		// News of the time between two others, and an update that changes no class.
		must(t, s.IngestMachines(ctx, []accounting.MachineEvent{
			classEvent("plain", "other", begin-1, accounting.MachineUpdated),
			classEvent("fast", "gpu", begin+hour, accounting.MachineUpdated)}))
		wantUnits("news out of order", 100+10+100+100)

		// Another store gets all of it in one go, and this one is opened again.
		whole := openStore(t, options())
		must(t, whole.AddRate(ctx, classRate()))
		for e, err := range s.Reader(ctx).Machines(accounting.TimeRange{}) {
			must(t, err)
			must(t, whole.IngestMachines(ctx, []accounting.MachineEvent{e}))
		}
		for seq, node := range []string{"fast", "plain", "new"} {
			must(t, whole.Ingest(ctx, testSource(1), testHost(1), classedAttempt(uint64(seq)+1, node, begin)))
		}
		must(t, whole.Ingest(ctx, testSource(1), testHost(1), classedAttempt(4, "plain", begin+3*hour)))
		compute(t, whole, begin+accounting.DayMillis)
		must(t, s.Close())
		s = openStore(t, o)
		equalDigests(t, digest(t, s), digest(t, whole))
		classes := map[string]string{}
		for a, err := range s.Reader(ctx).Attempts(accounting.Selection{}) {
			must(t, err)
			classes[a.Node] = a.Class + " " + a.AppClass
		}
		if classes["fast"] != "gpu gpu" || classes["plain"] != "gpu gpu" || classes["new"] != "gpu gpu" {
			t.Errorf("got the classes %v", classes)
		}
	})
}

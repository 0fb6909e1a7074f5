package store

import (
	"cmp"
	"errors"
	"slices"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// finals returns the last entry of each attempt of feeds, and of each job.
func finals(feeds ...[]accounting.FeedEntry) (map[accounting.AttemptKey]accounting.AttemptEntry,
	map[accounting.JobKey]accounting.JobEntry) {
	attempts, jobs := map[accounting.AttemptKey]accounting.AttemptEntry{}, map[accounting.JobKey]accounting.JobEntry{}
	for _, feed := range feeds {
		for _, e := range feed {
			if e.Attempt != nil {
				attempts[e.Attempt.AttemptKey] = *e.Attempt
			}
			if e.Job != nil {
				jobs[e.Job.JobKey] = *e.Job
			}
		}
	}
	return attempts, jobs
}

// TestUsageAgainstEntries holds each report against sums over the entries themselves.
func TestUsageAgainstEntries(t *testing.T) {
	feed := testFeed(1, 60)
	attempts, jobs := finals(feed)
	november := accounting.NewMonth(2026, 11)
	onEngines(t, func(t *testing.T, options func() Options) {
		s := openStore(t, options())
		ingestAll(t, s, 1, feed, 500)
		compute(t, s, workloadEnd)
		r := s.Reporter(t.Context())
		for _, whole := range []bool{false, true} {
			for _, when := range []accounting.TimeRange{{}, november.Range(),
				{From: workloadStart + 5*accounting.HourMillis,
					To: workloadStart + 61*accounting.HourMillis}} {
				filter := accounting.Filter{Group: "physics", Bands: accounting.Bands(roost.BatchBand, roost.FreeBand)}
				lines, err := r.UsageLines(accounting.UsageQuery{
					Range: when, By: accounting.ByOwner | accounting.ByBand, Filter: filter, WholeAtEnd: whole,
				})
				must(t, err)
				want := map[accounting.UsageLine]accounting.Amounts{}
				for _, a := range attempts {
					job := jobs[a.JobKey]
					if !filter.MatchesJob(&job) {
						continue
					}
					key := accounting.UsageLine{Owner: job.Owner, Band: job.Band}
					sum := want[key]
					if whole {
						if total := a.Total(job.Eligible, workloadEnd); when.Contains(a.Ended) {
							sum.Add(&total)
						}
					} else {
						a.HourParts(job.Eligible, workloadEnd, when, func(_ accounting.Millis,
							part *accounting.Amounts) {
							sum.Add(part)
						})
					}
					if sum != (accounting.Amounts{}) {
						want[key] = sum
					}
				}
				if len(lines) != len(want) || len(want) == 0 {
					t.Fatalf("whole %v: got %d lines, want %d", whole, len(lines), len(want))
				}
				for _, l := range lines {
					if l.Amounts != want[accounting.UsageLine{Owner: l.Owner, Band: l.Band}] {
						t.Errorf("whole %v: got %+v, want %+v", whole, l, want[accounting.UsageLine{Owner: l.Owner,
							Band: l.Band}])
					}
				}
			}
		}
		checkCounts(t, r, attempts)
	})
}

// checkCounts holds the other reports against counts of the entries.
func checkCounts(t *testing.T, r accounting.Reporter, attempts map[accounting.AttemptKey]accounting.AttemptEntry) {
	causes, sizes, waits := map[accounting.EndCause]int64{}, map[int]int64{}, int64(0)
	for _, a := range attempts {
		causes[a.Cause]++
		sizes[accounting.SizeBucket(int64(a.Held.CPU))]++
		if a.Attempt == 1 {
			waits++
		}
	}
	ends, err := r.EndLines(accounting.TimeRange{}, "", false)
	must(t, err)
	for _, e := range ends {
		if e.Count != causes[e.Cause] || e.Owner != "" {
			t.Errorf("got %+v, want %d", e, causes[e.Cause])
		}
		delete(causes, e.Cause)
	}
	lines, err := r.SizeLines(accounting.TimeRange{})
	must(t, err)
	for _, z := range lines {
		sizes[z.Bucket] -= z.Count
	}
	waiting, err := r.WaitLines(accounting.TimeRange{})
	must(t, err)
	for _, w := range waiting {
		waits -= w.Count
	}
	for bucket, n := range sizes {
		if n != 0 {
			t.Errorf("size %d: %d attempts are missing", bucket, n)
		}
	}
	if len(causes) != 0 || waits != 0 {
		t.Errorf("causes %v and %d waits are missing", causes, waits)
	}
	efficiency, err := r.Efficiency(accounting.TimeRange{}, accounting.Filter{}, 2)
	must(t, err)
	if len(efficiency) != 2 || efficiency[0].WastedCPU < efficiency[1].WastedCPU || efficiency[1].WastedCPU == 0 {
		t.Errorf("got %+v", efficiency)
	}
}

// TestSelections holds each selection, read in pages, against sorted entries.
func TestSelections(t *testing.T) {
	t.Parallel()
	feeds := [][]accounting.FeedEntry{testFeed(1, 30), testFeed(2, 30)}
	attempts, jobs := finals(feeds...)
	onEngines(t, func(t *testing.T, options func() Options) {
		s := openStore(t, options())
		for i, feed := range feeds {
			ingestAll(t, s, byte(i+1), feed, 500)
		}
		r := s.Reader(t.Context())
		for _, by := range []accounting.TimeField{accounting.ByEnd, accounting.BySubmit, accounting.ByStart} {
			for _, descending := range []bool{false, true} {
				for _, filter := range []accounting.Filter{{}, {Owner: "ann"}, {Node: "node3"}, {Group: "physics",
					Owner: "bob"}, {Owner: "nobody"}} {
					s := accounting.Selection{
						By: by, Descending: descending, Filter: filter, Limit: 7,
						Range: accounting.TimeRange{From: workloadStart + accounting.DayMillis/2,
							To: workloadEnd - accounting.DayMillis},
					}
					pageAttempts(t, r, s, attempts, jobs)
					s.Filter.Node = ""
					pageJobs(t, r, s, jobs)
				}
			}
		}
	})
}

func pageAttempts(t *testing.T, r accounting.Reader, s accounting.Selection,
	attempts map[accounting.AttemptKey]accounting.AttemptEntry, jobs map[accounting.JobKey]accounting.JobEntry) {
	t.Helper()
	var want []accounting.Position
	for k, a := range attempts {
		job := jobs[k.JobKey]
		at := map[accounting.TimeField]accounting.Millis{accounting.ByEnd: a.Ended, accounting.ByStart: a.Started,
			accounting.BySubmit: job.Submitted}[s.By]
		if s.Range.Contains(at) && s.Filter.MatchesAttempt(&accounting.AttemptRecord{AttemptEntry: a, Job: &job}) {
			want = append(want, accounting.Position{Time: at, AttemptKey: k})
		}
	}
	var got []accounting.Position
	for {
		page := collect(t, r.Attempts(s))
		for _, a := range page {
			at := map[accounting.TimeField]accounting.Millis{accounting.ByEnd: a.Ended, accounting.ByStart: a.Started,
				accounting.BySubmit: a.Job.Submitted}[s.By]
			got = append(got, accounting.Position{Time: at, AttemptKey: a.AttemptKey})
			if entry := attempts[a.AttemptKey]; a.Wall != entry.Wall || len(a.Segments) != len(entry.Segments) ||
				a.Node != entry.Node || a.Job.Owner != jobs[a.JobKey].Owner {
				t.Fatalf("got %+v, want %+v", a, entry)
			}
		}
		if len(page) < s.Limit {
			break
		}
		s.After = &got[len(got)-1]
	}
	comparePositions(t, s, got, want)
}

func pageJobs(t *testing.T, r accounting.Reader, s accounting.Selection,
	jobs map[accounting.JobKey]accounting.JobEntry) {
	t.Helper()
	time := func(j *accounting.JobEntry) accounting.Millis {
		return map[accounting.TimeField]accounting.Millis{accounting.ByEnd: j.Ended, accounting.ByStart: j.Eligible,
			accounting.BySubmit: j.Submitted}[s.By]
	}
	var got, want []accounting.Position
	for k, j := range jobs {
		if s.Range.Contains(time(&j)) && s.Filter.MatchesJob(&j) {
			want = append(want, accounting.Position{Time: time(&j), AttemptKey: accounting.AttemptKey{JobKey: k}})
		}
	}
	for {
		page := collect(t, r.Jobs(s))
		for _, j := range page {
			got = append(got, accounting.Position{Time: time(&j), AttemptKey: accounting.AttemptKey{JobKey: j.JobKey}})
		}
		if len(page) < s.Limit {
			break
		}
		s.After = &got[len(got)-1]
	}
	comparePositions(t, s, got, want)
}

// comparePositions holds the records of a selection and their order.
func comparePositions(t *testing.T, s accounting.Selection, got, want []accounting.Position) {
	t.Helper()
	slices.SortFunc(want, func(a, b accounting.Position) int {
		c := cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Month, b.Month), cmp.Compare(a.Source[0], b.Source[0]),
			cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Index, b.Index), cmp.Compare(a.Attempt, b.Attempt))
		if s.Descending {
			return -c
		}
		return c
	})
	if !slices.Equal(got, want) {
		t.Fatalf("%+v: got %d records, want %d in another order or others", s, len(got), len(want))
	}
}

func TestOneJob(t *testing.T) {
	feed := testFeed(1, 20)
	attempts, jobs := finals(feed)
	onEngines(t, func(t *testing.T, options func() Options) {
		s := openStore(t, options())
		ingestAll(t, s, 1, feed, 500)
		must(t, s.IngestMachines(t.Context(), testMachines()))
		r := s.Reader(t.Context())
		for k, want := range jobs {
			got, err := r.Job(testHost(1), k.Seq)
			must(t, err)
			want.Name = cleanText(want.Name, maxNameBytes)
			if got != want {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
			for _, a := range collect(t, r.JobAttempts(k)) {
				if a.Ended != attempts[a.AttemptKey].Ended || a.JobKey != k {
					t.Errorf("got %+v", a)
				}
				delete(attempts, a.AttemptKey)
			}
		}
		if len(attempts) != 0 {
			t.Errorf("%d attempts are missing", len(attempts))
		}
		if _, err := r.Job(testHost(1), 1<<40); !errors.Is(err, roost.NotFound) {
			t.Errorf("got %v", err)
		}
		if _, err := r.Job("other", 1); !errors.Is(err, roost.NotFound) {
			t.Errorf("got %v", err)
		}
		present := collect(t, r.MachinesAt(workloadStart+3500))
		if len(present) != 4 || present[2].Node != "node2" || present[2].Capacity.GPUs != 2 {
			t.Errorf("got %+v", present)
		}
		attempts = mapOfAttempts(feed)
	})
}

func mapOfAttempts(feed []accounting.FeedEntry) map[accounting.AttemptKey]accounting.AttemptEntry {
	attempts, _ := finals(feed)
	return attempts
}

// TestCapacity holds the sums of the machines of an hour.
func TestCapacity(t *testing.T) {
	onEngines(t, func(t *testing.T, options func() Options) {
		s := openStore(t, options())
		must(t, s.IngestMachines(t.Context(), testMachines()))
		compute(t, s, workloadEnd)
		r := s.Reporter(t.Context())
		hour := accounting.TimeRange{From: workloadStart + 31*accounting.HourMillis,
			To: workloadStart + 32*accounting.HourMillis}
		lines, err := r.CapacityLines(hour, true)
		must(t, err)
		machine := 64 * int64(accounting.HourMillis)
		want := accounting.CapacityLine{
			Class: "cpu", Hour: hour.From, Total: 8 * machine, Owner: 2 * machine, Idle: 6 * machine,
			TotalGPU: 7 * int64(accounting.HourMillis),
		}
		if len(lines) != 1 || lines[0] != want {
			t.Errorf("got %+v, want %+v", lines, want)
		}
		day := accounting.TimeRange{From: workloadStart + 2*accounting.DayMillis,
			To: workloadStart + 3*accounting.DayMillis}
		lines, err = r.CapacityLines(day, false)
		must(t, err)
		if len(lines) != 1 || lines[0].Total != 8*24*machine || lines[0].Drained != 2*24*machine ||
			lines[0].Idle != 6*24*machine {
			t.Errorf("got %+v", lines)
		}
	})
}

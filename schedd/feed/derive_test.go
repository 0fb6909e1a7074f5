package feed

import (
	"fmt"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/schedd/queue"
)

var testSource = accounting.SourceID{7}

// rows is what a store would have: the last entry of each natural key. Values are texts.
type rows map[string]string

func (r rows) add(drafts []Draft) {
	var encoder entryEncoder
	for i := range drafts {
		d := &drafts[i]
		body := string(encoder.encode(d))
		switch {
		case d.Job != nil:
			r[fmt.Sprint("job ", d.Job.Seq)] = body
		case d.Attempt != nil:
			r[fmt.Sprint("attempt ", d.Attempt.AttemptKey)] = body
		case d.Action != nil:
			r[fmt.Sprint("action ", *d.Action)] = body
		}
	}
}

func checkSameRows(t testing.TB, got, want rows) {
	t.Helper()
	for key := range want {
		if got[key] != want[key] {
			t.Errorf("%s:\ngot  %q\nwant %q", key, got[key], want[key])
		}
	}
	for key := range got {
		if _, there := want[key]; !there {
			t.Errorf("%s is too much", key)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// TestHistoryGivesTheSame derives entries as events happen, and again from the list of
// events of each job. The last entry of each key is the same, and so are the parts of
// each attempt.
func TestHistoryGivesTheSame(t *testing.T) {
	suspended, useful, segments := 0, 0, 0
	for seed := range uint64(30) {
		q, d := queue.New(testHost), NewDeriver(testSource, testHost)
		s := newRandomJobs(seed, q)
		live, events := rows{}, map[uint64][]queue.JobEvent{}
		for range 400 {
			for _, e := range s.step(t) {
				d.Before(q, &e)
				q.Apply(e)
				d.After(q, &e)
				e.Submission = nil // as the journal and the history keep events
				events[e.Job] = append(events[e.Job], e)
			}
			drafts := d.Take()
			for i := range drafts {
				if a := drafts[i].Attempt; a != nil {
					checkSegments(t, a)
					segments += len(a.Segments)
					suspended += min(int(a.Suspended), 1)
					if a.Cause != accounting.EndedExit {
						useful += min(int(a.Useful), 1)
					}
				}
			}
			live.add(drafts)
		}
		rebuilt := rows{}
		for seq, list := range events {
			snapshot, _ := q.Snapshot(seq)
			past := queue.New(testHost)
			if err := past.RestoreSnapshot(snapshot); err != nil {
				t.Fatal(err)
			}
			rebuilt.add(d.JobDrafts(past, seq, list))
		}
		checkSameRows(t, rebuilt, live)
	}
	if suspended < 50 || useful < 20 || segments < 100 {
		t.Errorf("only %d suspended attempts, %d saved ones and %d segments", suspended, useful, segments)
	}
}

// checkSegments fails unless the parts of an attempt add up.
func checkSegments(t testing.TB, a *accounting.AttemptEntry) {
	t.Helper()
	wall, suspended := int64(0), int64(0)
	for _, s := range a.Segments {
		if wall += s.Wall; s.Suspended {
			suspended += s.Wall
		}
		if s.Wall <= 0 {
			t.Errorf("a segment without time: %+v", a)
		}
	}
	if len(a.Segments) > 0 && wall != a.Wall || suspended != a.Suspended || a.Useful > a.Wall {
		t.Fatalf("%d ms in segments, %d of them suspended: %+v", wall, suspended, a)
	}
}

// TestSnapshotDerivesTheSame restores a queue from its snapshots between any two events:
// what follows is the same as without.
func TestSnapshotDerivesTheSame(t *testing.T) {
	for seed := range uint64(10) {
		q, d := queue.New(testHost), NewDeriver(testSource, testHost)
		s := newRandomJobs(seed, q)
		for range 150 {
			copied := queue.New(testHost)
			for seq := range q.LastSeq() + 1 {
				if b, there := q.Snapshot(seq); there {
					if err := copied.RestoreSnapshot(b); err != nil {
						t.Fatal(err)
					}
				}
			}
			other := NewDeriver(testSource, testHost)
			for _, e := range s.step(t) {
				d.Before(q, &e)
				q.Apply(e)
				d.After(q, &e)
				other.Before(copied, &e)
				copied.Apply(e)
				other.After(copied, &e)
			}
			want, got := rows{}, rows{}
			want.add(d.Take())
			got.add(other.Take())
			checkSameRows(t, got, want)
		}
	}
}

// TestProject reads what a job is charged to.
func TestProject(t *testing.T) {
	q, d := queue.New(testHost), NewDeriver(testSource, testHost)
	for _, e := range newRandomJobs(1, q).submit(t, 3) {
		d.Before(q, &e)
		q.Apply(e)
		d.After(q, &e)
	}
	drafts := d.Take()
	encoder := entryEncoder{groupName: func(uint32) string { return "users" }}
	encoder.encode(&drafts[0])
	j := drafts[0].Job
	if j.Project != "ocean" || j.Arguments != "wave" || j.WorkDir != "/home/alice" || j.UnixGroup != "users" ||
		j.Tasks != 3 || j.Request.CPU != 2000 || j.Submitted == 0 {
		t.Errorf("got %+v", j)
	}
}

// TestUnreportedStart checks that an attempt whose node told of its end alone began its
// wall time before that.
func TestUnreportedStart(t *testing.T) {
	second := int64(time.Second)
	for wall, want := range map[int64]accounting.Millis{7 * second: 93_000, 0: 0, 50 * second: 60_000} {
		e := &queue.JobEvent{Time: 100 * second, Type: queue.Ended, Exit: &queue.AttemptExit{Wall: wall}}
		got := attemptEntry(accounting.JobKey{}, e, &queue.AccountedAttempt{Attempt: 1, Assigned: 60 * second})
		if got.Started != want || int64(got.Wall) != wall/1e6 {
			t.Errorf("after %d s: it began at %d and ran for %d, want %d", wall/second, got.Started, got.Wall, want)
		}
	}
}

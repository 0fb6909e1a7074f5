package schedd

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestUncertainJobs checks when a job runs again whose record has lost the beginning of
// an attempt. It runs again when no lease from before the schedd's start can be valid,
// and not before. That holds for a job that is released, and for an ended one that is
// retried.
func TestUncertainJobs(t *testing.T) {
	ada := queue.CallerIdentity{User: "ada", UID: 1000, GID: 1000, Host: "s"}
	for _, c := range []struct {
		name string
		verb wire.ActRequest_Verb
		ends bool
	}{{"release", wire.ActRequest_RELEASE, false}, {"retry", wire.ActRequest_RETRY, true},
		{"rerun", wire.ActRequest_RERUN, true}} {
		t.Run(c.name, func(t *testing.T) {
			q := queue.New("s")
			apply := func(events []queue.JobEvent, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range events {
					q.Apply(e)
				}
			}
			now := time.Unix(1_000_000, 0)
			ad := classad.New()
			ad.SetString(roost.AttrCmd, "/bin/true")
			ad.SetInt(roost.AttrJobLease, 600)
			events, ids, _, err := q.SubmitJobs(now, ada, "key", []queue.SubmitSpec{{Ad: ad, Count: 1}},
				queue.SubmitLimits{})
			apply(events, err)
			job := queue.TaskSelector{Job: ids[0]}
			if c.ends {
				apply(q.RemoveTasks(now, ada, job, "", false))
			}
			e, _ := q.HoldDamaged(now, 1, 1000, "it was damaged")
			apply([]queue.JobEvent{e}, nil)

			h := &steppedSchedd{TB: t, at: ClockReading{now, time.Hour}}
			h.core = NewCore("s", "domain", 40*time.Minute, 0, q, 2, 0, now, h)
			h.core.ResumeLogged(h.at)
			over := 600*time.Second + 6*time.Second + 10*time.Second
			for _, after := range []time.Duration{0, over - time.Second} {
				h.at.Boot = time.Hour + after
				err := h.core.Act(h.at, &wire.ActRequest{Verb: c.verb}, ada, job, func() {})
				if !errors.Is(err, roost.Unavailable) ||
					!strings.Contains(err.Error(), "try again in "+(over-after).String()) {
					t.Fatalf("after %v: %v", after, err)
				}
			}
			h.at.Boot = time.Hour + over
			if err := h.core.Act(h.at, &wire.ActRequest{Verb: c.verb}, ada, job, func() {}); err != nil {
				t.Fatal(err)
			}
			h.commitTurn()
			if _, unsure := q.UnrecordedLease(1); unsure {
				t.Error("it runs again, and is doubted still")
			}
			if err := h.core.Act(h.at, &wire.ActRequest{Verb: wire.ActRequest_HOLD}, ada, job, func() {}); err != nil {
				t.Fatal(err)
			}
			release := &wire.ActRequest{Verb: wire.ActRequest_RELEASE}
			if err := h.core.Act(h.at, release, ada, job, func() {}); err != nil {
				t.Errorf("a hold like any other: %v", err)
			}
		})
	}
}

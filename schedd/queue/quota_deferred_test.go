package queue

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// TestDeferredAdmission checks that a deferred job counts for no quota until it is
// admitted. One that is refused is held with the reason, and asked about again when it is
// released. All that survives a restart.
func TestDeferredAdmission(t *testing.T) {
	ad, err := classad.Parse(`[Cmd = "/bin/true"; RequestCpus = 2]`)
	if err != nil {
		t.Fatal(err)
	}
	now, who := time.Unix(1000, 0), CallerIdentity{User: "ann", UID: 1000, GID: 1000, Host: "s"}
	q := New("s")
	do := func(events []eventlog.JobEvent, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			retained, err := eventlog.DecodeEvent(eventlog.AppendEvent(nil, &events[i]))
			if err != nil {
				t.Fatal(err)
			}
			q.Apply(retained)
		}
	}
	submit := func(key string, unasked bool) {
		t.Helper()
		events, _, _, err := q.SubmitJobs(now, who, key, []jobad.SubmitSpec{{Ad: ad, Count: 3,
			DeferredAdmission: unasked}},
			SubmitLimits{})
		do(events, err)
	}
	submit("asked", false)
	submit("unasked", true)
	payer, d, ok := q.DeferredDemand(2)
	if !ok || d.Tasks != 3 || d.CPU != 6000 || !slices.Equal(q.DeferredJobs(), []uint64{2}) {
		t.Fatalf("of %v asks for %v; unasked are %v", payer, d, q.DeferredJobs())
	}
	if got := q.DemandOf(payer); got.Tasks != 3 {
		t.Errorf("%d tasks count, of which nobody has allowed some", got.Tasks)
	}
	do(q.HoldOverQuota(now, 2, "quota of ann: too much"), nil)
	retained, _ := q.Snapshot(2)
	q = New("s")
	if err := q.RestoreSnapshot(retained); err != nil {
		t.Fatal(err)
	}
	st, _ := q.Status(2)
	if !IsQuotaRefusal(st.Reason) || !strings.Contains(st.Reason, "quota of ann: too much") ||
		len(q.DeferredJobs()) > 0 || len(q.HoldOverQuota(now, 2, "again")) > 0 {
		t.Errorf("refused it is held for %q, and %v are to be asked about", st.Reason, q.DeferredJobs())
	}
	do(q.ReleaseTasks(now, who, TaskSelector{Job: st.Job}))
	if !slices.Equal(q.DeferredJobs(), []uint64{2}) {
		t.Errorf("released, %v are to be asked about", q.DeferredJobs())
	}
	do(q.AdmitDeferred(now, 2), nil)
	if got := q.DemandOf(payer); got.Tasks != 3 || len(q.DeferredJobs()) > 0 || q.AdmitDeferred(now, 2) != nil {
		t.Errorf("admitted, %d tasks count, and %v are to be asked about", got.Tasks, q.DeferredJobs())
	}
	retained, _ = q.Snapshot(2)
	q = New("s")
	if err := q.RestoreSnapshot(retained); err != nil || len(q.DeferredJobs()) > 0 {
		t.Errorf("after a restart %v are to be asked about, %v", q.DeferredJobs(), err)
	}
}

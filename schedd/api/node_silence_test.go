package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/negotiation"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/transfer"
)

// TestSilentNode: a task whose node was not heard of for a while is not said to simply
// run there.
func TestSilentNode(t *testing.T) {
	for _, c := range []struct {
		ad     string
		away   time.Duration
		reason string
		brief  string
		why    string
	}{
		{"", 3 * time.Minute, "no word from n1 for 3m; if it stays silent the task is started again in 38m",
			"no word from n1 for 3m",
			"there is no word from n1 for 3m; if it stays silent the task is started again in 38m"},
		{"Rerunnable = false", 39*time.Minute + 40*time.Second,
			"no word from n1 for 40m; if it stays silent the attempt is given up in 54s", "no word from n1 for 40m",
			"there is no word from n1 for 40m; if it stays silent the attempt is given up in 54s"},
		{"", 5 * time.Second, "", "", "it runs on n1"},
	} {
		s, st := newSilentNodeTest(t, c.ad, c.away)
		row := s.addLiveStatus(s.statusRow(&st, ""), &st)
		reply := &wire.WhyReply{}
		s.explainState(reply, &st)
		if row.GetReason() != c.reason || row.GetBrief() != c.brief || reply.GetSummary() != c.why {
			t.Errorf("[%s] away for %v: got\n%s\n%s\n%s", c.ad, c.away, row.GetReason(), row.GetBrief(),
				reply.GetSummary())
		}
	}
}

// leasedJobs gives every attempt the same lease.
type leasedJobs struct{ dispatch.JobQueue }

func (leasedJobs) Lease(dispatch.RequestID) time.Duration { return 40 * time.Minute }

func (leasedJobs) SilenceRules(dispatch.RequestID) dispatch.SilenceRules {
	return dispatch.SilenceRules{}
}
func (leasedJobs) RecordSilence(roost.AttemptID, string) {}
func (leasedJobs) RecordReturn(roost.AttemptID)          {}

// clockLoop is a loop that has a clock only.
type clockLoop struct{ Loop }

func (clockLoop) BootClock() roost.BootTime { return 100 * time.Hour }
func (clockLoop) Now() time.Time            { return time.Unix(360000, 0) }

// newSilentNodeTest is a schedd with one task, on a node that went away so long ago.
func newSilentNodeTest(t *testing.T, with string, away time.Duration) (*Service, queue.JobStatus) {
	t.Helper()
	ad, err := classad.Parse(fmt.Sprintf("[Cmd = \"/bin/true\"; %s]", with))
	if err != nil {
		t.Fatal(err)
	}
	q := queue.New("h")
	d := dispatch.New(leasedJobs{}, dispatch.DefaultOptions())
	s := New(Config{
		Node:  &config.Node{Name: "h", Schedd: &config.ScheddSettings{JobLease: 40 * time.Minute}},
		Queue: q, Dispatch: d, Loop: clockLoop{}, Leader: negotiation.New(negotiation.Config{}),
		Transfers: &transfer.FileTransfers{},
	})
	now := time.Unix(1, 0)
	events, ids, _, err := s.queue.SubmitJobs(now, queue.CallerIdentity{User: "alice", UID: 1000}, "k",
		[]queue.SubmitSpec{{Ad: ad, Count: 1}}, queue.SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	s.queue.Apply(events[0])
	e, a, err := s.queue.AssignNext(now, ids[0].Task(0), "n1", "unix:/n1", 7)
	if err != nil {
		t.Fatal(err)
	}
	s.queue.Apply(e)
	if e, ok := s.queue.RecordStarted(now, a); ok {
		s.queue.Apply(e)
	}
	st, _ := s.queue.Status(ids[0].Seq)
	d.Adopt(clockLoop{}.BootClock()-away, []dispatch.RecoveredAttempt{{Attempt: a,
		Request: dispatch.RequestID(st.Request),
		Node:    "n1", Address: "unix:/n1", Claim: 7, Started: true, Resources: roost.Resources{CPU: 1000}}})
	return s, st
}

// TestApproxDuration holds how lengths of time are said.
func TestApproxDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 16400 * time.Millisecond: "16s", 119 * time.Second: "1m59s", 10*time.Minute + 20*time.Second: "10m",
		time.Hour: "1h", 70 * time.Minute: "1h10m", 10 * time.Hour: "10h",
	} {
		if got := approxDuration(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

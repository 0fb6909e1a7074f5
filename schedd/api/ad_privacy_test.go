package api

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestPrivateAttributes checks that other users do not see a job's environment, script
// and arguments. Nor can they find them out by asking for jobs that have them.
func TestPrivateAttributes(t *testing.T) {
	ad, err := classad.Parse(
		`[Cmd = "/bin/true"; Environment = {"TOKEN=hunter2"}; Arguments = {"--password=hunter2"}; Script = "hunter2"; Indirect = Environment[0]; JobName = "n"]`,
	)
	if err != nil {
		t.Fatal(err)
	}
	q := queue.New("h")
	events, _, _, err := q.SubmitJobs(time.Unix(1, 0), queue.CallerIdentity{User: "alice", UID: 1000}, "k",
		[]queue.SubmitSpec{{Ad: ad, Count: 1}}, queue.SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	q.Apply(events[0])
	text, _ := q.JobAd(1)
	if public := publicAd(text); strings.Contains(public, "hunter2") || !strings.Contains(public, "JobName") {
		t.Errorf("others are shown %s", public)
	}
	status, _ := q.Status(1)
	for _, c := range []struct {
		who        queue.CallerIdentity
		constraint string
		want       bool
	}{
		{queue.CallerIdentity{User: "alice", UID: 1000}, `Environment[0] == "TOKEN=hunter2"`, true},
		{queue.CallerIdentity{User: "root", Admin: true}, `Script == "hunter2"`, true},
		{queue.CallerIdentity{User: "bob", UID: 1001}, `Environment[0] == "TOKEN=hunter2"`, false},
		{queue.CallerIdentity{User: "bob", UID: 1001}, `Indirect == "TOKEN=hunter2"`, false},
		{queue.CallerIdentity{User: "bob", UID: 1001}, `Script == "hunter2"`, false},
		{queue.CallerIdentity{User: "bob", UID: 1001}, `JobName == "n"`, true},
	} {
		f, err := newFilter(&wire.Selection{Constraint: c.constraint}, c.who)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.admits(q, status, &classad.EvalEnv{}); got != c.want {
			t.Errorf("%s asks for %s: got %v, want %v", c.who.User, c.constraint, got, c.want)
		}
	}
}

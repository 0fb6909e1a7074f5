package queue

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/rpc"
)

// TestWhoActs checks what events and refusals say of a user who acts on another's job.
func TestWhoActs(t *testing.T) {
	q := New("physics")
	ann := CallerIdentity{User: "ann", UID: 1000, Origin: "n1", Host: "physics"}
	ad := classad.New()
	ad.SetString(roost.AttrCmd, "/bin/true")
	now := time.Unix(1, 0)
	events, ids, _, err := q.SubmitJobs(now, ann, "key", []SubmitSpec{{Ad: ad, Count: 1}}, SubmitLimits{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		q.Apply(events[i])
	}
	target := TaskSelector{Job: ids[0]}
	for _, c := range []struct {
		who  CallerIdentity
		want string
	}{
		{ann, "ann"},
		{CallerIdentity{User: "ann", UID: 1000, Origin: "n1", Admin: true}, "ann"},
		{CallerIdentity{User: "bob", UID: 1000, Origin: "n2", Admin: true}, "bob@n2"},
		{CallerIdentity{User: "bob@n2", UID: 1<<32 - 1, Admin: true}, "bob@n2"},
		{CallerIdentity{User: "root", Admin: true}, "root"},
	} {
		events, err := q.HoldTasks(now, c.who, target, "")
		if err != nil || events[0].RequestedBy != c.want || events[0].Reason != "by "+c.want {
			t.Errorf("%+v: %+v, %v", c.who, events, err)
		}
	}
	_, err = q.HoldTasks(now, CallerIdentity{User: "bob", UID: 1000, Origin: "n2", Host: "physics"}, target, "")
	if rpc.KindOf(err) != roost.PermissionDenied || !strings.Contains(err.Error(), "roost admin give bob@n2 jobs") {
		t.Errorf("without the capability: %v", err)
	}
}

package queue

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// TestOpenTasksAreShared fills a queue as two users and looks who is still served. Nobody
// has more than the bound of one user, and the last tenth is for users who have few.
func TestOpenTasksAreShared(t *testing.T) {
	q := New("h")
	limits := SubmitLimits{MaxQueued: 1000, MaxPerUser: 500}
	keys := 0
	submit := func(who CallerIdentity, count int) error {
		ad, err := classad.Parse(`[Cmd = "/bin/true"]`)
		if err != nil {
			t.Fatal(err)
		}
		keys++
		events, _, _, err := q.SubmitJobs(time.Unix(1, 0), who, strconv.Itoa(keys),
			[]jobad.SubmitSpec{{Ad: ad, Count: count}}, limits)
		for _, e := range events {
			q.Apply(e)
		}
		q.Check()
		return err
	}
	user := func(uid uint32) CallerIdentity { return CallerIdentity{User: "u" + strconv.Itoa(int(uid)), UID: uid} }
	root := CallerIdentity{User: "root", Admin: true}
	for _, step := range []struct {
		who     CallerIdentity
		count   int
		refusal string // empty: it is taken
	}{
		{user(1), 501, "this schedd takes 500 of one user"},
		{user(1), 500, ""},
		{user(1), 1, "500 of your tasks are queued, these would make 501"},
		{user(2), 401,
			"the last 100 of the 1000 that this schedd takes are for users who have at most 10; you would have 401"},
		{user(2), 400, ""},
		{user(2), 1, "for users who have at most 10"},
		{user(3), 11, "you would have 11"},
		{user(3), 10, ""},
		{user(3), 1, "you would have 11"},
		{user(4), 1, ""},
		{root, 89, ""},
		{root, 1, "1000 tasks of all users are queued, these would make 1001"},
		{user(5), 1, "1000 tasks of all users"},
	} {
		err := submit(step.who, step.count)
		if step.refusal == "" && err != nil || step.refusal != "" &&
			(!errors.Is(err, roost.Exhausted) || !strings.Contains(err.Error(), step.refusal)) {
			t.Errorf("%s submits %d: got %v, want %q", step.who.User, step.count, err, step.refusal)
		}
	}
	if q.OpenTasks(1) != 500 || q.OpenTasks(2) != 400 || q.OpenTasks(3) != 10 || q.OpenTasks(9) != 0 {
		t.Errorf("open: %v", q.openByUser)
	}
}

// TestSubmissionInLog checks that a submission is refused which is large in the log. It
// may be small as it is sent, because there each of its jobs has the key, and more.
func TestSubmissionInLog(t *testing.T) {
	q := New("h")
	ad, err := classad.Parse(`[Cmd = "/bin/true"]`)
	if err != nil {
		t.Fatal(err)
	}
	for _, jobs := range []int{10, 100} {
		events, _, _, err := q.SubmitJobs(time.Unix(1, 0), CallerIdentity{User: "u", UID: 1}, strings.Repeat("k", 256),
			slices.Repeat([]jobad.SubmitSpec{{Ad: ad, Count: 1}}, jobs), SubmitLimits{MaxLog: 10_000})
		size := 0
		for i := range events {
			size += len(AppendEvent(nil, &events[i]))
		}
		if taken := jobs == 10; taken != (err == nil) || !taken && !errors.Is(err, roost.Exhausted) || size > 10_000 {
			t.Errorf("%d jobs of %d bytes: %v", jobs, size, err)
		}
	}
}

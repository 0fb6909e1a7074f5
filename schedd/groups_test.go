package schedd

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestInGroup holds that a job runs in no group that its user is not in.
func TestInGroup(t *testing.T) {
	s := &Schedd{users: newUserAgents()}
	who := queue.Submitter{User: "ann", UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	own := s.users.groupName(who.GID)
	job := func(group string) queue.Spec {
		ad := classad.New()
		if group != "" {
			ad.SetString(roost.AttrUnixGroup, group)
		}
		return queue.Spec{Ad: ad}
	}
	for _, test := range []struct {
		jobs []queue.Spec
		want error
	}{
		{[]queue.Spec{job("")}, nil},
		{[]queue.Spec{job(own), job(own)}, nil},
		{[]queue.Spec{job(own), job("")}, nil},
		{[]queue.Spec{job(""), job("no-such-group")}, roost.Invalid},
		{[]queue.Spec{job("no-such-group")}, roost.PermissionDenied},
		{[]queue.Spec{job(foreign(t, who.UID))}, roost.PermissionDenied},
	} {
		got, err := s.inGroup(who, test.jobs)
		if !errors.Is(err, test.want) || got.GID != who.GID {
			t.Errorf("%v: gid %d, %v; want %v", test.jobs[0].Ad, got.GID, err, test.want)
		}
	}
	who.GID++ // as after newgrp(1): the group that he is in is another one than that which he submits with
	mine := s.users.groupName(uint32(os.Getgid()))
	switch got, err := s.inGroup(who, []queue.Spec{job(mine)}); {
	case os.Geteuid() == 0 && (err != nil || got.GID != uint32(os.Getgid())):
		t.Errorf("own group: gid %d, %v", got.GID, err)
	case os.Geteuid() != 0 && !errors.Is(err, roost.Invalid):
		t.Errorf("own group without root: %v", err)
	}
}

// foreign is a group that the user is not in.
func foreign(t *testing.T, uid uint32) string {
	for gid := range 100 {
		found, err := user.LookupGroupId(strconv.Itoa(gid))
		if err != nil {
			continue
		}
		in := false
		for _, own := range groups(uid) {
			in = in || own == uint32(gid)
		}
		if !in {
			return found.Name
		}
	}
	t.Log("this user is in all groups that there are: one that there is not stands for them")
	return "nobody-at-all"
}

// A group is chosen where it is not the primary one; of a user whom the machine does not know nobody can tell.
func TestGroupIsChosen(t *testing.T) {
	u := newUserAgents()
	for _, tt := range []struct {
		uid, gid uint32
		want     bool
	}{{0, 0, false}, {0, 1, true}, {1234567891, 5, false}, {1234567891, 6, false}} {
		if got := u.chose(tt.uid, tt.gid); got != tt.want {
			t.Errorf("uid %d, gid %d: got %v", tt.uid, tt.gid, got)
		}
	}
}

package api

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/transfer"
)

// TestInGroup holds that a job runs in no group that its user is not in.
func TestInGroup(t *testing.T) {
	s := New(Config{Users: transfer.NewUserAgents()})
	who := queue.CallerIdentity{User: "ann", UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	own := s.users.GroupName(who.GID)
	job := func(group string) queue.SubmitSpec {
		ad := classad.New()
		if group != "" {
			ad.SetString(roost.AttrUnixGroup, group)
		}
		return queue.SubmitSpec{Ad: ad}
	}
	for _, test := range []struct {
		jobs []queue.SubmitSpec
		want error
	}{
		{[]queue.SubmitSpec{job("")}, nil},
		{[]queue.SubmitSpec{job(own), job(own)}, nil},
		{[]queue.SubmitSpec{job(own), job("")}, nil},
		{[]queue.SubmitSpec{job(""), job("no-such-group")}, roost.Invalid},
		{[]queue.SubmitSpec{job("no-such-group")}, roost.PermissionDenied},
		{[]queue.SubmitSpec{job(foreignGroup(t, who.UID))}, roost.PermissionDenied},
	} {
		got, err := s.resolveUnixGroup(who, test.jobs)
		if !errors.Is(err, test.want) || got.GID != who.GID {
			t.Errorf("%v: gid %d, %v; want %v", test.jobs[0].Ad, got.GID, err, test.want)
		}
	}
	who.GID++ // as after newgrp(1): the group that he is in is another one than that which he submits with
	mine := s.users.GroupName(uint32(os.Getgid()))
	switch got, err := s.resolveUnixGroup(who, []queue.SubmitSpec{job(mine)}); {
	case os.Geteuid() == 0 && (err != nil || got.GID != uint32(os.Getgid())):
		t.Errorf("own group: gid %d, %v", got.GID, err)
	case os.Geteuid() != 0 && !errors.Is(err, roost.Invalid):
		t.Errorf("own group without root: %v", err)
	}
}

// foreignGroup is a group that the user is not in.
func foreignGroup(t *testing.T, uid uint32) string {
	for gid := range 100 {
		found, err := user.LookupGroupId(strconv.Itoa(gid))
		if err != nil {
			continue
		}
		in := false
		for _, own := range transfer.UnixGroups(uid) {
			in = in || own == uint32(gid)
		}
		if !in {
			return found.Name
		}
	}
	t.Log("this user is in all groups that there are: one that there is not stands for them")
	return "nobody-at-all"
}

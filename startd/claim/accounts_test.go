package claim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/account"
	"github.com/roost-batch/roost/internal/config"
)

// fakeDirectory is a directory for tests: ann is in users and project, shadow is the
// system's.
type fakeDirectory struct{ broken bool }

func (l fakeDirectory) User(uid uint32) (account.UserEntry, error) {
	switch {
	case l.broken:
		return account.UserEntry{}, fmt.Errorf("%w: no answer", roost.Unavailable)
	case uid == 1000:
		return account.UserEntry{UID: uid, IsKnown: true, Name: "ann", GID: 100, Groups: []uint32{100, 5000}}, nil
	case uid == 0:
		return account.UserEntry{UID: uid, IsKnown: true, Name: "root", GID: 0, Groups: []uint32{0}}, nil
	}
	return account.UserEntry{UID: uid}, nil
}

func (l fakeDirectory) Group(gid uint32) (account.GroupEntry, error) {
	name, known := map[uint32]string{0: "root", 42: "shadow", 100: "users", 5000: "project", 5001: "others",
		7777: "seven"}[gid]
	return account.GroupEntry{GID: gid, IsKnown: known, Name: name}, nil
}

func testAccounts(change func(*Accounts)) *Accounts {
	all := []account.IDRange{{First: 0, Last: 1<<32 - 2}}
	a := &Accounts{node: "n1", domain: "n1", rules: config.TaskAccounts{Users: config.AnyUser},
		directory: fakeDirectory{}, uids: all, gids: all}
	if change != nil {
		change(a)
	}
	return a
}

func TestMayRun(t *testing.T) {
	tests := []struct {
		own, uid  uint32
		allowRoot bool
		want      bool
	}{
		{0, 1000, false, true},
		{0, 999, false, false},
		{0, 0, false, false},
		{0, 0, true, true},
		{1000, 1000, false, true},
		{500, 500, false, true},
		{1000, 1001, true, false},
		{1000, 0, true, false},
		{0, 65534, true, false},
		{0, 65535, true, false},
		{0, 1<<32 - 1, true, false},
	}
	for _, tt := range tests {
		err := testAccounts(func(a *Accounts) {
			a.ownUID, a.allowRoot = tt.own, tt.allowRoot
		}).refusalReason(tt.uid)
		if (err == nil) != tt.want || err != nil && !errors.Is(err, roost.PermissionDenied) {
			t.Errorf("%+v: got %v", tt, err)
		}
	}
	container := testAccounts(func(a *Accounts) { a.uids = []account.IDRange{{First: 0, Last: 65535}} })
	if err := container.refusalReason(100_000); !errors.Is(err, roost.PermissionDenied) {
		t.Errorf("a uid that the container has not: got %v", err)
	}
}

// TestResolveGroups checks that groups come from the execute machine's directory,
// whatever a submit node names.
func TestResolveGroups(t *testing.T) {
	for _, tt := range []struct {
		uid, gid uint32
		chosen   bool
		want     string
	}{
		{1000, 100, false, "1000:100 [100 5000]"},
		{1000, 5000, true, "1000:5000 [100 5000]"},
		{1000, 42, false, "1000:100 [100 5000]"}, // another primary group at the submit node, or a lie: it is hers here
		{1000, 42, true, "ann (uid 1000) is not in group shadow (gid 42) on n1"},
		{1000, 5001, true, "ann (uid 1000) is not in group others (gid 5001) on n1"},
		{12345, 12345, false, "12345:12345 []"},
		{12345, 54321, false, "12345:54321 []"},
		{12345, 54321, true, "12345:54321 []"},
		{12345, 42, false, "12345:12345 []"},
		{12345, 5000, false, "12345:12345 []"},
		{12345, 42, true,
			"on n1 uid 12345 is in no group, and group shadow (gid 42) is not for those who are not in it"},
		{12345, 1<<32 - 1, false, "12345:12345 []"},
		{12345, 65534, false, "12345:12345 []"},
		{7777, 42, false, "is in no group"}, // its own number is a group that others have
	} {
		r, err := testAccounts(nil).Resolve(Claimant{Node: "s1", UID: tt.uid, GID: tt.gid, GroupChosen: tt.chosen})
		got := fmt.Sprintf("%d:%d %v", r.UID, r.GID, r.Groups)
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != tt.want || err != nil &&
			(!strings.Contains(got, tt.want) || !errors.Is(err, roost.PermissionDenied)) {
			t.Errorf("%+v: got %s", tt, got)
		}
	}
	broken := testAccounts(func(a *Accounts) { a.directory = fakeDirectory{broken: true} })
	if r, err := broken.Resolve(Claimant{Node: "s1", UID: 1000, GID: 100}); !errors.Is(err, roost.Unavailable) {
		t.Errorf("without an answer of the directory: got %+v, %v", r, err)
	}
}

// TestResolveUsers checks that the machine owner's settings decide as which user a task
// runs.
func TestResolveUsers(t *testing.T) {
	trust := []config.SubmitNodeTrust{{Node: "login*", Users: []string{"ann", "33000-33999"}}}
	slots := func(a *Accounts) {
		a.rules.Users, a.rules.SlotUIDs = config.SlotUser, account.IDRange{First: 200_000, Last: 200_999}
	}
	trusting := func(a *Accounts) { slots(a); a.rules.Trust = trust }
	sharing := func(a *Accounts) { slots(a); a.domain = "lab" }
	for _, tt := range []struct {
		name   string
		change func(*Accounts)
		c      Claimant
		want   string
	}{
		{"any", nil, Claimant{Node: "s1", UID: 1000}, "itself"},
		{"any, unknown", nil, Claimant{Node: "s1", UID: 12345}, "itself"},
		{"directory", func(a *Accounts) {
			a.rules.Users = config.DirectoryUser
		}, Claimant{Node: "s1", UID: 1000}, "itself"},
		{"directory, unknown", func(a *Accounts) {
			a.rules.Users = config.DirectoryUser
		}, Claimant{Node: "s1", UID: 12345}, "uid 12345 is not in the user directory of n1"},
		{"any, trusted", func(a *Accounts) {
			a.rules.Trust = trust
		}, Claimant{Node: "Login2", UID: 1000}, "itself"},
		{"any, not trusted", func(a *Accounts) {
			a.rules.Trust = trust
		}, Claimant{Node: "s1", UID: 1000}, "does not let submit node s1 name ann (uid 1000)"},
		{"any, another user", func(a *Accounts) {
			a.rules.Trust = trust
		}, Claimant{Node: "login2", UID: 12345}, "does not let submit node login2 name uid 12345"},
		{"any, a range", func(a *Accounts) {
			a.rules.Trust = trust
		}, Claimant{Node: "login2", UID: 33001}, "itself"},
		{"slots", slots, Claimant{Node: "s1", UID: 1000, Domain: "s1"}, "slot"},
		{"slots, the machine's own", slots, Claimant{Node: "n1", UID: 1000, Domain: "n1"}, "itself"},
		{"slots, the machine's own, unknown", slots, Claimant{Node: "n1", UID: 12345, Domain: "n1"}, "itself"},
		{"slots, says it has the machine's files", slots, Claimant{Node: "s1", UID: 1000, Domain: "n1"}, "slot"},
		{"slots, a slot user's number", slots, Claimant{Node: "s1", UID: 200_007},
			"uid 200007 is one of the slot users of n1"},
		{"slots, trusted", trusting, Claimant{Node: "login1", UID: 1000}, "itself"},
		{"slots, not trusted", trusting, Claimant{Node: "s1", UID: 1000}, "slot"},
		{"slots, shared files", sharing, Claimant{Node: "s1", UID: 1000, Domain: "lab"}, "itself"},
		{"slots, shared files, unknown", sharing, Claimant{Node: "s1", UID: 12345, Domain: "lab"},
			"which shares the files of domain lab"},
		{"slots, other files", sharing, Claimant{Node: "s1", UID: 1000, Domain: "s1"}, "slot"},
	} {
		tt.c.GID = tt.c.UID
		r, err := testAccounts(tt.change).Resolve(tt.c)
		got := "itself"
		switch {
		case err != nil:
			got = err.Error()
		case r.SlotUserPending:
			got = "slot"
		case r.UID != tt.c.UID:
			got = fmt.Sprint("as uid ", r.UID)
		}
		if err == nil && got != tt.want || err != nil &&
			(!strings.Contains(got, tt.want) || !errors.Is(err, roost.PermissionDenied)) {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestSlotUser checks that a user has the same slot user on all machines. No other user
// has that slot user.
func TestSlotUser(t *testing.T) {
	slots := func(a *Accounts) { a.rules.SlotUIDs = account.IDRange{First: 200_000, Last: 200_003} }
	a := testAccounts(slots)
	var given []uint32
	taken := func(slot uint32) bool { return slices.Contains(given, slot) }
	for uid := range uint32(4) {
		alone, err := a.ChooseSlotUser("S1", uid, func(uint32) bool { return false })
		if again, _ := testAccounts(slots).ChooseSlotUser("s1", uid, func(uint32) bool {
			return false
		}); err != nil || again.UID != alone.UID {
			t.Errorf("uid %d: got %d and %d, %v", uid, alone.UID, again.UID, err)
		}
		c, err := a.ChooseSlotUser("s1", uid, taken)
		if err != nil || taken(c.UID) || !a.rules.SlotUIDs.Contains(c.UID) || c.GID != c.UID || c.Groups != nil {
			t.Fatalf("uid %d: got %+v, %v", uid, c, err)
		}
		given = append(given, c.UID)
	}
	if c, err := a.ChooseSlotUser("s1", 5, taken); !errors.Is(err, roost.Exhausted) {
		t.Errorf("none is left: got %+v, %v", c, err)
	}
	a.uids = []account.IDRange{{First: 0, Last: 65535}}
	if c, err := a.ChooseSlotUser("s1", 5, taken); !errors.Is(err, roost.BadConfig) {
		t.Errorf("in a container: got %+v, %v", c, err)
	}
}

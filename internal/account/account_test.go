package account

import (
	"errors"
	"os"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/roost-batch/roost"
)

func TestCheckUID(t *testing.T) {
	for _, tt := range []struct {
		uid  uint32
		fine bool
	}{{0, true}, {1000, true}, {12345, true}, {65534, false}, {65535, false}, {1<<32 - 1, false}, {1<<32 - 2, true}} {
		if err := CheckUID(tt.uid); (err == nil) != tt.fine || err != nil && !errors.Is(err, roost.PermissionDenied) {
			t.Errorf("uid %d: got %v", tt.uid, err)
		}
	}
}

func TestRange(t *testing.T) {
	r, err := ParseRange("2000-2999")
	if err != nil || r.String() != "2000-2999" || r.Size() != 1000 || !r.Contains(2000) || !r.Contains(2999) ||
		r.Contains(1999) || r.Contains(3000) {
		t.Errorf("got %v, %v", r, err)
	}
	if r, err := ParseRange("7"); err != nil || r != (IDRange{7, 7}) {
		t.Errorf("got %v, %v", r, err)
	}
	for _, text := range []string{"", "x", "5-4", "1-x", "-1", "4294967296", "1-2-3"} {
		if r, err := ParseRange(text); !errors.Is(err, roost.Invalid) {
			t.Errorf("%q: got %v, %v", text, r, err)
		}
	}
	if (IDRange{}).Contains(0) {
		t.Error("the empty range has root in it")
	}
}

// TestDirectory checks that the machine's own directory has root, and has no user with an
// unused number.
func TestDirectory(t *testing.T) {
	if _, err := os.Stat("/etc/passwd"); err != nil {
		t.Skip("SKIPPED: NO /etc/passwd, so there is no directory to ask")
	}
	d := NewDirectory()
	if u, err := d.User(0); err != nil || !u.IsKnown || u.Name != "root" || !slices.Contains(u.Groups, 0) {
		t.Errorf("root: got %+v, %v", u, err)
	}
	if u, err := d.User(1234567891); err != nil || u.IsKnown || u.Groups != nil {
		t.Errorf("a uid that nobody has: got %+v, %v", u, err)
	}
	if g, err := d.Group(0); err != nil || !g.IsKnown || g.Name != "root" {
		t.Errorf("group 0: got %+v, %v", g, err)
	}
	if g, err := d.Group(1234567891); err != nil || g.IsKnown {
		t.Errorf("a gid that nobody has: got %+v, %v", g, err)
	}
}

// TestDirectoryHangs checks that a directory that hangs gives an error, not an unknown
// user. It delays no caller for long, and is asked again later.
func TestDirectoryHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mend, asked := make(chan struct{}), 0
		d := newDirectory(accountLookup{user: func(uid uint32) (UserEntry, error) {
			asked++
			<-mend
			return UserEntry{UID: uid, IsKnown: true, GID: 7}, nil
		}})
		for range 2 {
			if _, err := d.User(1000); !errors.Is(err, roost.Unavailable) {
				t.Fatalf("got %v", err)
			}
		}
		close(mend)
		synctest.Wait()
		for range 2 {
			if u, err := d.User(1000); err != nil || !u.IsKnown || !slices.Equal(u.Groups, []uint32{7}) {
				t.Errorf("got %+v, %v", u, err)
			}
		}
		if asked != 3 {
			t.Errorf("asked %d times, want 3: what has answered is not asked again", asked)
		}
	})
}

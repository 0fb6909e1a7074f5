package packages

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/damage"
	"github.com/roost-batch/roost/internal/store"
)

var ada = Caller{Owner: "uid 7 of n1", User: "ada", Node: "n1"}

// testPins is a store that only has pins.
type testPins map[store.Digest]bool

func (p testPins) Pin(digest store.Digest, _ string) error   { p[digest] = true; return nil }
func (p testPins) Unpin(digest store.Digest, _ string) error { delete(p, digest); return nil }
func (p testPins) List() (list []store.Entry) {
	for digest := range p {
		list = append(list, store.Entry{Digest: digest, Pins: []string{pinOwner}})
	}
	return list
}

func testDigest(n int) store.Digest { return store.Digest(fmt.Sprintf("sha256:%064x", n)) }

func openRegister(t *testing.T, dir string, pins testPins, bounds Bounds) *Register {
	t.Helper()
	r, err := Open(dir, pins, bounds)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *Register) mustAdd(t *testing.T, name, version string, digest int) {
	t.Helper()
	if _, err := r.AddVersion(ada, name, version, testDigest(digest), 10, nil); err != nil {
		t.Fatal(err)
	}
}

// TestRegister follows a name over restarts: its versions never change, and a label moves
// and returns.
func TestRegister(t *testing.T) {
	dir, pins := t.TempDir(), testPins{}
	r := openRegister(t, dir, pins, DefaultBounds())
	r.mustAdd(t, "web", "1.4", 1)
	r.mustAdd(t, "web", "1.4", 1)
	r.mustAdd(t, "web", "1.5", 2)
	if _, err := r.AddVersion(ada, "web", "1.4", testDigest(3), 10, nil); !errors.Is(err, roost.Conflict) ||
		!strings.Contains(err.Error(), "a version never changes: choose another version") {
		t.Errorf("another digest: %v", err)
	}
	for _, version := range []string{"1.4", "1.5", "1.5", "1.4"} {
		if v, err := r.MoveLabel(ada, "web", "live", version); err != nil || v.Version != version {
			t.Fatalf("to %s: %+v, %v", version, v, err)
		}
	}
	if _, err := r.MoveLabel(ada, "web", "canary", "live"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.RemoveVersion(ada, "web", "1.4"); !errors.Is(err, roost.Conflict) {
		t.Errorf("a version that a label names is removed: %v", err)
	}
	if _, err := r.RemoveVersion(ada, "web", "1.5"); err != nil {
		t.Error(err)
	}
	for range 2 {
		if len(pins) != 1 || !pins[testDigest(1)] {
			t.Errorf("pinned are %v", pins)
		}
		p, err := r.Find("web")
		if err != nil {
			t.Fatal(err)
		}
		var moves []string
		for _, m := range p.History {
			moves = append(moves, m.User+" "+m.Label+" "+m.From+">"+m.To)
		}
		want := []string{"ada live >1.4", "ada live 1.4>1.5", "ada live 1.5>1.4", "ada canary >1.4"}
		if !slices.Equal(moves, want) {
			t.Errorf("history: %q", moves)
		}
		if v, err := p.Resolve("canary"); err != nil || v.Digest != testDigest(1) {
			t.Errorf("canary is %+v, %v", v, err)
		}
		if _, err := p.Resolve("1.5"); !errors.Is(err, roost.NotFound) {
			t.Errorf("a removed version: %v", err)
		}
		if _, err := r.AddVersion(ada, "web", "1.5", testDigest(3), 10, nil); !errors.Is(err, roost.Conflict) {
			t.Errorf("a removed version has other contents: %v", err)
		}
		pins[testDigest(9)] = true // of a crash between the pin and the name
		if err := os.WriteFile(filepath.Join(dir, "web.json.new77"), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		r = openRegister(t, dir, pins, DefaultBounds())
	}
	if _, err := r.AddVersion(ada, "web", "1.5", testDigest(2), 10, nil); err != nil || !pins[testDigest(2)] {
		t.Errorf("a removed version is made again: %v, %v", err, pins)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("files: %v, %v", list, err)
	}
}

// TestRights has others change what is not theirs.
func TestRights(t *testing.T) {
	r := openRegister(t, t.TempDir(), testPins{}, DefaultBounds())
	r.mustAdd(t, "web", "1", 1)
	r.mustAdd(t, "web", "2", 2)
	if _, err := r.MoveLabel(ada, "web", "live", "1"); err != nil {
		t.Fatal(err)
	}
	for text, tt := range map[string]struct {
		caller Caller
		may    bool
	}{
		"another user":                      {Caller{Owner: "uid 8 of n1", User: "bob", Node: "n1"}, false},
		"the same uid of another node":      {Caller{Owner: "uid 7 of n2", User: "ada", Node: "n2"}, false},
		"an administrator of another node":  {Caller{"uid 0 of n2", "root", "n2", true}, false},
		"an administrator of the node":      {Caller{"uid 0 of n1", "root", "n1", true}, true},
		"an administrator of the server":    {Caller{"uid 0", "root", "", true}, true},
		"a user of the server's machine":    {Caller{"uid 7", "ada", "", false}, false},
		"the owner":                         {ada, true},
		"the owner by another name of hers": {Caller{Owner: ada.Owner, User: "lovelace", Node: "n1"}, true},
	} {
		_, moved := r.MoveLabel(tt.caller, "web", "live", "2")
		_, added := r.AddVersion(tt.caller, "web", "3", testDigest(3), 1, nil)
		removed := r.RemoveLabel(tt.caller, "web", "live")
		_, ended := r.RemoveVersion(tt.caller, "web", "3")
		for what, err := range map[string]error{"move": moved, "add": added, "remove a label": removed,
			"remove a version": ended} {
			if want := map[bool]error{false: roost.PermissionDenied}[tt.may]; !errors.Is(err, want) {
				t.Errorf("%s: %s: got %v", text, what, err)
			}
		}
		if _, err := r.MoveLabel(ada, "web", "live", "1"); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"", "Web", "WEB", "../web", ".web", "web/1", "a b", "web\n",
		strings.Repeat("x", 101)} {
		if _, err := r.AddVersion(ada, name, "1", testDigest(1), 1, nil); !errors.Is(err, roost.Invalid) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	for _, version := range []string{"", "live", "v1", "1/2", "1 ", "-1", "1@2"} {
		if _, err := r.AddVersion(ada, "web", version, testDigest(1), 1, nil); !errors.Is(err, roost.Invalid) {
			t.Errorf("version %q: %v", version, err)
		}
	}
	for _, label := range []string{"1.4", "Live", "a b", "a/b", ".x"} {
		if _, err := r.MoveLabel(ada, "web", label, "1"); !errors.Is(err, roost.Invalid) {
			t.Errorf("label %q: %v", label, err)
		}
	}
	forged := ada
	forged.User = "ada\nroot"
	if _, err := r.MoveLabel(forged, "web", "live", "2"); !errors.Is(err, roost.Invalid) {
		t.Errorf("a user with a line break: %v", err)
	}
}

// TestBounds fills a register: each bound refuses what is beyond it, and what was there
// goes on.
func TestBounds(t *testing.T) {
	bounds := DefaultBounds()
	bounds.OwnerNames, bounds.Names, bounds.Versions, bounds.Labels, bounds.Moves = 3, 4, 3, 30, 40
	r := openRegister(t, t.TempDir(), testPins{}, bounds)
	for i := range 3 {
		r.mustAdd(t, "web", fmt.Sprint(i), i)
		r.mustAdd(t, fmt.Sprint("name", i%2), "1", i%2)
	}
	bob := Caller{Owner: "uid 8 of n1", User: "bob", Node: "n1"}
	refused := func(what string, c Caller, name, version string) {
		t.Helper()
		if _, err := r.AddVersion(c, name, version, testDigest(1), 1, nil); !errors.Is(err, roost.Exhausted) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("versions", ada, "web", "4")
	refused("names of an owner", ada, "more", "1")
	if _, err := r.AddVersion(bob, "other", "1", testDigest(1), 1, nil); err != nil {
		t.Error(err)
	}
	refused("names", bob, "more", "1")
	labels := 0
	for i := range 10_000 {
		_, err := r.MoveLabel(ada, "web", fmt.Sprint("l", i), "1")
		if err == nil {
			labels++
		} else if !errors.Is(err, roost.Exhausted) {
			t.Fatal(err)
		}
	}
	if labels != bounds.Labels {
		t.Errorf("%d labels, want %d", labels, bounds.Labels)
	}
	for i := range 100 {
		if _, err := r.MoveLabel(ada, "web", "l0", fmt.Sprint(i%2+1)); err != nil {
			t.Fatal(err)
		}
	}
	p, err := r.Find("web")
	if err != nil || len(p.History) != bounds.Moves || p.Forgotten+len(p.History) != bounds.Labels+99 {
		t.Errorf("history of %d, %d forgotten, %v", len(p.History), p.Forgotten, err)
	}
}

// TestBytes has an owner fill the memory of a server with what images say.
func TestBytes(t *testing.T) {
	bounds := DefaultBounds()
	bounds.Bytes, bounds.OwnerBytes = 20_000, 50_000
	dir := t.TempDir()
	r := openRegister(t, dir, testPins{}, bounds)
	image := &ImageSettings{Environment: []string{"X=" + strings.Repeat("x", 1000)}}
	counts := map[string]int{}
	for _, name := range []string{"a", "b", "c"} {
		for i := range 100 {
			_, err := r.AddVersion(ada, name, fmt.Sprint(i), testDigest(i), 1, image)
			if err != nil && !errors.Is(err, roost.Exhausted) {
				t.Fatal(err)
			}
			if err == nil {
				counts[name]++
			}
		}
	}
	if a, b, c := counts["a"], counts["b"], counts["c"]; a < 14 || a > 18 || a != b || c < 5 || c > 10 {
		t.Errorf("versions: %v", counts)
	}
	r = openRegister(t, dir, testPins{}, bounds)
	if _, err := r.AddVersion(ada, "c", "77", testDigest(7), 1, image); !errors.Is(err, roost.Exhausted) {
		t.Errorf("after a restart: %v", err)
	}
	if _, err := r.RemoveVersion(ada, "a", "0"); err != nil {
		t.Errorf("what is full cannot be made smaller: %v", err)
	}
}

// TestDamage damages the file of a name in many ways. The name is refused with the file,
// nobody else gets it, and its blobs stay pinned; other names go on.
func TestDamage(t *testing.T) {
	dir, pins := t.TempDir(), testPins{}
	r := openRegister(t, dir, pins, DefaultBounds())
	r.mustAdd(t, "web", "1", 1)
	r.mustAdd(t, "other", "1", 2)
	path := filepath.Join(dir, "web.json")
	damage.ForEach(t, path, 2, func(what string) {
		r, err := Open(dir, pins, DefaultBounds())
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		bob := Caller{Owner: "uid 8 of n1", User: "bob", Node: "n1"}
		if _, err := r.AddVersion(bob, "web", "2", testDigest(3), 1, nil); !errors.Is(err, roost.Internal) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%s: the name is %v", what, err)
		}
		if _, err := r.Find("other"); err != nil || !pins[testDigest(1)] {
			t.Errorf("%s: the other name: %v, %v", what, err, pins)
		}
	})
}

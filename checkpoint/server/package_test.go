package server

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/packages"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	blobstore "github.com/roost-batch/roost/internal/store"
	"github.com/roost-batch/roost/internal/wire"
)

// TestPackages has users of two submit nodes name what they have pushed. A node cannot
// speak for the users of another, and what has a name stays.
func TestPackages(t *testing.T) {
	p := newPool(t, 0)
	p.blobs, _ = openBlobs(t, blobstore.Options{})
	var err error
	if p.packages, err = packages.Open(t.TempDir(), p.blobs, packages.DefaultBounds()); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	source, _ := openBlobs(t, blobstore.Options{})
	var digests []string
	for _, text := range []string{"one", "two"} {
		m, err := source.Add(ctx, bytes.NewReader([]byte(text)), "")
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, string(m.Digest()))
	}
	n1, n2, machine := p.node("n1", peer.Schedd), p.node("n2", peer.Schedd), p.node("m1", peer.Startd)
	set := func(c wire.CheckpointServerClient, change *wire.PackageChange) error {
		change.Name, change.User = "web", "ada"
		_, err := c.SetPackage(ctx, change)
		return rpc.FromStatus(err)
	}
	one := func() *wire.PackageChange { return &wire.PackageChange{Version: "1", Digest: digests[0], Uid: 7} }
	if err := set(n1, one()); !errors.Is(err, roost.NotFound) || !strings.Contains(err.Error(), "roost package push") {
		t.Errorf("named before it is pushed: %v", err)
	}
	for _, c := range []wire.CheckpointServerClient{n1, n2} {
		if err := push(ctx, c, source, blobstore.Digest(digests[0]), 7); err != nil {
			t.Fatal(err)
		}
	}
	if err := set(n1, one()); err != nil {
		t.Fatal(err)
	}
	if err := set(n1, &wire.PackageChange{Version: "1", Label: "live", Uid: 7}); err != nil {
		t.Fatal(err)
	}
	change := func(label, version string, uid uint32) *wire.PackageChange {
		return &wire.PackageChange{Label: label, Version: version, Uid: uid}
	}
	removal, admin, adminRemoval := change("live", "1", 7), change("x", "1", 7), change("", "1", 0)
	removal.Remove, admin.Administrator, adminRemoval.Administrator, adminRemoval.Remove = true, true, true, true
	second := one()
	second.Version = "2"
	for what, err := range map[string]error{
		"another node claims the uid":          set(n2, removal),
		"and to be an administrator":           set(n2, admin),
		"and makes a version":                  set(n2, second),
		"another user":                         set(n1, change("x", "1", 8)),
		"a startd":                             set(machine, change("x", "1", 7)),
		"an execute node with the name of n1":  set(p.node("n1", peer.Startd), one()),
		"another node's administrator removes": set(n2, adminRemoval),
	} {
		if !errors.Is(err, roost.PermissionDenied) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if _, err := n1.RemoveBlob(ctx, &wire.BlobRequest{Digest: digests[0], Uid: 7}); !errors.Is(rpc.FromStatus(err),
		roost.Conflict) || !strings.Contains(err.Error(), "web@1") {
		t.Errorf("what has a name is removed: %v", err)
	}
	if _, err := n2.RemoveBlob(ctx, &wire.BlobRequest{Digest: digests[0], Uid: 7}); err != nil {
		t.Errorf("another ends her charge: %v", err)
	}
	list, err := machine.ListPackages(ctx, &wire.PackageQuery{Name: "web", Label: "live"})
	if err != nil || list.GetPackages()[0].GetVersions()[0].GetDigest() != digests[0] {
		t.Errorf("a machine asks: %v, %v", list, err)
	}
	if err := set(n1, &wire.PackageChange{Version: "1", Label: "live", Uid: 7, Remove: true}); err != nil {
		t.Error(err)
	}
	if err := set(n1, &wire.PackageChange{Version: "1", Uid: 7, Remove: true}); err != nil {
		t.Error(err)
	}
	if left := p.blobs.List(); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// TestPackagePages lists more names than one answer has.
func TestPackagePages(t *testing.T) {
	p := newPool(t, 0)
	p.blobs, _ = openBlobs(t, blobstore.Options{})
	var err error
	if p.packages, err = packages.Open(t.TempDir(), p.blobs, packages.DefaultBounds()); err != nil {
		t.Fatal(err)
	}
	m, err := p.blobs.Add(t.Context(), strings.NewReader("x"), "uid 7 of n1")
	if err != nil {
		t.Fatal(err)
	}
	ada := packages.Caller{Owner: "uid 7 of n1", User: "ada", Node: "n1"}
	const names = 9
	for i := range names {
		name := string(rune('a'+i)) + strings.Repeat("x", 90)
		if _, err := p.packages.AddVersion(ada, name, "1", m.Digest(), 1, nil); err != nil {
			t.Fatal(err)
		}
		for j := range 40 {
			label := "l" + strings.Repeat("y", 95) + string(rune('a'+j/26)) + string(rune('a'+j%26))
			if _, err := p.packages.MoveLabel(ada, name, label, "1"); err != nil {
				t.Fatal(err)
			}
		}
	}
	c, after, pages, got := p.node("n1", peer.Schedd), "", 0, 0
	for more := true; more; pages++ {
		list, err := c.ListPackages(t.Context(), &wire.PackageQuery{After: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range list.GetPackages() {
			if w.GetName() <= after {
				t.Errorf("%s follows %s", w.GetName(), after)
			}
			after, got = w.GetName(), got+1
		}
		more = list.GetMore()
	}
	if pages != 2 || got != names {
		t.Errorf("%d names on %d pages", got, pages)
	}
}

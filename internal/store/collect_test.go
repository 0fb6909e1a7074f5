package store

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/damage"
)

// TestCollect removes what was used longest ago, and nothing that is pinned.
func TestCollect(t *testing.T) {
	path := t.TempDir()
	d := open(t, path, Options{})
	var digests []Digest
	for i := range 5 {
		digests = append(digests, add(t, d, randomBytes(uint64(i), 1000), ""))
	}
	if err := d.Pin(digests[1], "claim 7/../..,"); err != nil {
		t.Fatal(err)
	}
	if err := d.Pin(digests[1], "claim 8"); err != nil {
		t.Fatal(err)
	}
	d.Path(digests[0]) // used last
	d.Close()
	d = open(t, path, Options{}) // pins and uses are remembered
	if removed, err := d.Collect(3000); err != nil || !slices.Equal(removed, []Digest{digests[2], digests[3]}) {
		t.Errorf("to 3000 bytes: %v, %v", removed, err)
	}
	if removed, err := d.Collect(0); err != nil || !slices.Equal(removed, []Digest{digests[4], digests[0]}) {
		t.Errorf("to 0 bytes: %v, %v", removed, err)
	}
	if err := d.Unpin(digests[1], "claim 8"); err != nil {
		t.Fatal(err)
	}
	if removed, err := d.Collect(0); err != nil || len(removed) != 0 {
		t.Errorf("pinned once: %v, %v", removed, err)
	}
	if got := d.List()[0].Pins; !slices.Equal(got, []string{"claim 7/../..,"}) {
		t.Errorf("pins: %q", got)
	}
	if err := d.Unpin(digests[1], "claim 7/../..,"); err != nil {
		t.Fatal(err)
	}
	if removed, err := d.Collect(0); err != nil || len(removed) != 1 {
		t.Errorf("unpinned: %v, %v", removed, err)
	}
	if _, err := d.Manifest(digests[1]); !errors.Is(err, roost.NotFound) {
		t.Errorf("a removed one: got %v", err)
	}
	files := 0
	err := filepath.WalkDir(filepath.Join(path, blobsDir), func(_ string, e os.DirEntry, err error) error {
		if !e.IsDir() {
			files++
		}
		return err
	})
	if err != nil || files != 0 {
		t.Errorf("%d files are left, %v", files, err)
	}
}

// TestPinFirst pins a blob that is still to come. It is not collected when it is whole.
func TestPinFirst(t *testing.T) {
	d := open(t, t.TempDir(), Options{})
	data := randomBytes(9, 100)
	digest := manifestOf(t, data).Digest()
	if err := d.Pin(digest, "claim"); err != nil {
		t.Fatal(err)
	}
	add(t, d, data, "")
	if removed, err := d.Collect(0); err != nil || len(removed) != 0 {
		t.Errorf("got %v, %v", removed, err)
	}
	for _, owner := range []string{"", string(make([]byte, 300))} {
		if err := d.Pin(digest, owner); !errors.Is(err, roost.Invalid) {
			t.Errorf("owner %q: got %v", owner, err)
		}
	}
}

// TestAbandoned removes the chunks of a blob that nobody receives any more.
func TestAbandoned(t *testing.T) {
	d := open(t, t.TempDir(), Options{})
	ctx := context.Background()
	old, active := manifestOf(t, randomBytes(1, 10)), manifestOf(t, randomBytes(2, 10))
	for _, m := range []Manifest{old, active} {
		in, err := d.Receive(ctx, m, "")
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if m.Digest() == old.Digest() {
			in.Close()
		}
		then := time.Now().Add(-2 * abandonedAfter)
		if err := os.Chtimes(in.path(incomingSuffix), then, then); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Collect(0); err != nil {
		t.Fatal(err)
	}
	hex := active.Digest().hex()
	if got := incomingFiles(t, d); !slices.Equal(got, []string{hex + incomingSuffix, hex + manifestSuffix}) {
		t.Errorf("left: %v", got)
	}
}

// TestOwners charges two users for one blob, and bounds what each has.
func TestOwners(t *testing.T) {
	path := t.TempDir()
	o := Options{MaxBytesOfOwner: 2500}
	d := open(t, path, o)
	const ada = "ada \"x\"\n@host"
	first, second := randomBytes(1, 1000), randomBytes(2, 1400)
	ctx := context.Background()
	digest := add(t, d, first, ada)
	add(t, d, second, ada)
	if _, err := d.Add(ctx, bytes.NewReader(randomBytes(3, 101)), ada); !errors.Is(err, roost.Exhausted) {
		t.Errorf("too much: got %v", err)
	}
	if _, err := d.Receive(ctx, manifestOf(t, randomBytes(3, 101)), ada); !errors.Is(err, roost.Exhausted) {
		t.Errorf("too much received: got %v", err)
	}
	add(t, d, randomBytes(4, 2000), "bob")
	if _, err := d.Add(ctx, bytes.NewReader(first), "bob"); !errors.Is(err, roost.Exhausted) {
		t.Errorf("another's blob is charged as well: got %v", err)
	}
	add(t, d, first, "eve")
	d.Close()
	d = open(t, path, o)
	for _, c := range []struct {
		owner string
		gone  bool
	}{{ada, false}, {"eve", true}} {
		if gone, err := d.Disown(digest, c.owner); err != nil || gone != c.gone {
			t.Errorf("%q: got %v, %v, want %v", c.owner, gone, err, c.gone)
		}
	}
	if _, err := d.Disown(digest, "eve"); !errors.Is(err, roost.NotFound) {
		t.Errorf("once more: got %v", err)
	}
}

// TestMaxBytes bounds the store, and makes room for what comes.
func TestMaxBytes(t *testing.T) {
	d := open(t, t.TempDir(), Options{MaxBytes: 3000})
	one := add(t, d, randomBytes(1, 1000), "")
	two := add(t, d, randomBytes(2, 1000), "")
	_, err := d.Receive(context.Background(), manifestOf(t, randomBytes(3, 1001)), "")
	if !errors.Is(err, roost.Exhausted) {
		t.Errorf("got %v", err)
	}
	if err := d.Pin(one, "claim"); err != nil {
		t.Fatal(err)
	}
	if removed, err := d.CollectFor(1001); err != nil || !slices.Equal(removed, []Digest{two}) {
		t.Errorf("got %v, %v, want the one without a pin removed", removed, err)
	}
	if _, err := d.CollectFor(2001); !errors.Is(err, roost.Exhausted) {
		t.Errorf("more than a pin leaves: got %v", err)
	}
}

// TestFullDisk fills a small disk: by size alone, and under the store.
func TestFullDisk(t *testing.T) {
	path := damage.SmallDisk(t, "", 5*ChunkBytes, 0o700)
	d := open(t, filepath.Join(path, "store"), Options{})
	ctx := context.Background()
	big := randomBytes(1, 6*ChunkBytes)
	if _, err := d.Receive(ctx, manifestOf(t, big), ""); !errors.Is(err, roost.Exhausted) {
		t.Errorf("received: got %v", err)
	}
	if _, err := d.Add(ctx, bytes.NewReader(big), ""); !errors.Is(err, roost.Exhausted) {
		t.Errorf("added: got %v", err)
	}
	data := randomBytes(2, 3*ChunkBytes)
	m := manifestOf(t, data)
	in, err := d.Receive(ctx, m, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Put(0, chunkOf(data, 0)); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(path, "another's")
	if err := os.WriteFile(other, make([]byte, 4*ChunkBytes-64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := in.Put(1, chunkOf(data, 1)); !errors.Is(err, roost.Exhausted) {
		t.Errorf("put: got %v", err)
	}
	if _, err := in.Finish(); !errors.Is(err, roost.Conflict) {
		t.Errorf("finished: got %v", err)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	for _, i := range in.Missing() {
		if err := in.Put(i, chunkOf(data, i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := in.Finish(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	checkBlob(t, d, m.Digest(), data)
	if d.arriving != 0 {
		t.Errorf("%d bytes are reserved", d.arriving)
	}
}

// TestSetPins: an owner names all that it needs, and nothing else of it stays pinned.
// What is not there is returned. Pins that were not set for long expire.
func TestSetPins(t *testing.T) {
	d := open(t, t.TempDir(), Options{})
	var digests []Digest
	for i := range 3 {
		digests = append(digests, add(t, d, randomBytes(uint64(i), 1000), ""))
	}
	absent := Digest(digestPrefix + strings.Repeat("0a", 32))
	if missing, err := d.SetPins("jobs of a", []Digest{digests[0], absent, digests[1]}); err != nil ||
		!slices.Equal(missing, []Digest{absent}) {
		t.Fatalf("missing: %v, %v", missing, err)
	}
	if _, err := d.SetPins("jobs of b", digests[1:2]); err != nil {
		t.Fatal(err)
	}
	if missing, err := d.SetPins("jobs of a", digests[:1]); err != nil || len(missing) != 0 {
		t.Fatalf("missing: %v, %v", missing, err)
	}
	pins := map[Digest][]string{}
	for _, e := range d.List() {
		pins[e.Digest] = e.Pins
	}
	if !slices.Equal(pins[digests[0]], []string{"jobs of a"}) || len(pins[digests[2]]) != 0 ||
		!slices.Equal(pins[digests[1]], []string{"jobs of b"}) {
		t.Errorf("pins: %v", pins)
	}
	if err := d.ExpirePins("jobs of a", time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if removed, err := d.Collect(0); err != nil || !slices.Equal(removed, []Digest{digests[2]}) {
		t.Errorf("removed %v, %v", removed, err)
	}
	if err := d.ExpirePins("jobs of a", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if removed, err := d.Collect(0); err != nil || !slices.Equal(removed, []Digest{digests[0]}) {
		t.Errorf("removed %v, %v", removed, err)
	}
}

// TestSpareBlobs: blobs that nobody has used for a while give way to a new one, if they
// are not pinned. Those of an owner do not give way to more of the owner's.
func TestSpareBlobs(t *testing.T) {
	path := t.TempDir()
	d := open(t, path, Options{MaxBytes: 3000, MaxBytesOfOwner: 2000, SpareAfter: time.Hour})
	old := add(t, d, randomBytes(1, 1000), "ada")
	pinned := add(t, d, randomBytes(2, 1000), "ada")
	if err := d.Pin(pinned, "jobs"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Add(t.Context(), bytes.NewReader(randomBytes(3, 1000)), "ada"); !errors.Is(err, roost.Exhausted) {
		t.Errorf("beyond the owner's bound: %v", err)
	}
	add(t, d, randomBytes(4, 1000), "bob")
	if _, err := d.Add(t.Context(), bytes.NewReader(randomBytes(5, 1000)), "bob"); !errors.Is(err, roost.Exhausted) {
		t.Errorf("all were used just now: %v", err)
	}
	long := time.Now().Add(-2 * time.Hour)
	for digest, b := range d.blobs {
		if digest == old || digest == pinned {
			b.lastUse = long
		}
	}
	add(t, d, randomBytes(5, 1000), "bob")
	if _, err := d.Manifest(old); !errors.Is(err, roost.NotFound) {
		t.Errorf("the one used longest ago: %v", err)
	}
	if _, err := d.Manifest(pinned); err != nil {
		t.Errorf("the pinned one: %v", err)
	}
}

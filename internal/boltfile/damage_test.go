package boltfile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/roost-batch/roost"
)

var manyKeys = ContentKind{Description: "file", Buckets: []string{"large", "small", "pages"}}

// fill writes records of all sizes, overwrites some and deletes some, so that there are
// free pages with old records. It returns the contents.
func fill(t testing.TB, path string) map[string]string {
	t.Helper()
	want := map[string]string{}
	rng := rand.New(rand.NewPCG(3, 4))
	db, err := Open(path, manyKeys, func(db *DB) error {
		for round := range 6 {
			err := db.Update(func(tx *Tx) error {
				put := func(bucket, key string, size int) error {
					value := bytes.Repeat([]byte{byte(rng.Uint32())}, size)
					want[bucket+"/"+key] = string(value)
					return tx.Bucket([]byte(bucket)).Put([]byte(key), value)
				}
				for i := range 400 {
					if err := put("pages", fmt.Sprintf("%06d", round*300+i), rng.IntN(90)); err != nil {
						return err
					}
				}
				gone := fmt.Sprintf("%06d", round*300+7)
				delete(want, "pages/"+gone)
				return errors.Join(put("small", fmt.Sprint("name ", round%4), 8),
					put("large", fmt.Sprint(round), 10_000),
					tx.Bucket([]byte("pages")).Delete([]byte(gone)))
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	return want
}

// damage flips a bit, truncates the file, or overwrites a part of it.
func damage(rng *rand.Rand, b []byte) (string, []byte) {
	b = slices.Clone(b)
	at, page := rng.IntN(len(b)), os.Getpagesize()
	first := at / page * page
	switch rng.IntN(12) {
	case 0:
		return fmt.Sprintf("cut to %d bytes", at), b[:at]
	case 1:
		return fmt.Sprintf("cut to the page at %d", first), b[:first]
	case 2:
		clear(b[first : first+page])
		return fmt.Sprintf("no page at %d", first), b
	case 3:
		from := rng.IntN(len(b)/page) * page
		copy(b[first:first+page], b[from:from+page])
		return fmt.Sprintf("the page at %d is that of %d", first, from), b
	case 4:
		n := min(len(b)-at, 1+rng.IntN(600))
		for i := range n {
			b[at+i] = byte(rng.Uint32())
		}
		return fmt.Sprintf("%d bytes at %d", n, at), b
	case 5: // page headers
		at = first + rng.IntN(64)
	case 6: // the meta pages
		at = rng.IntN(2)*page + rng.IntN(96)
	}
	bit := rng.IntN(8)
	b[at] ^= 1 << bit
	return fmt.Sprintf("bit %d of byte %d", bit, at), b
}

// TestDamage damages a file in many ways. Reading it returns an error that names the
// damage, or exactly what was written.
func TestDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	want := fill(t, path)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h, _ := metaPageAt(whole, 0)
	whole = whole[:min(len(whole), int(h.pageCount*h.size))] // what follows is never read
	rng := rand.New(rand.NewPCG(1, 2))
	refused, retained := 0, 0
	for trial := range 1000 {
		name, b := damage(rng, whole)
		if bytes.Equal(b, whole) {
			continue
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		d, err := InspectFile(path, manyKeys, func(bucket string, key, value []byte) {
			got[bucket+"/"+string(key)] = string(value)
		})
		if err != nil {
			t.Fatalf("%d: %s: %v", trial, name, err)
		}
		// old pages may be found if a meta page is lost; but never records that were not
		// written
		for key, value := range got {
			if was, known := want[key]; d == nil && (!known || was != value) {
				t.Fatalf("%d: %s: %q is another than was written, without a word", trial, name, key)
			}
		}
		if d != nil {
			refused++
			retained += len(got)
			if trial%50 == 0 {
				checkRefused(t, path, d)
			}
			continue
		}
		if len(got) != len(want) {
			t.Fatalf("%d: %s: %d of %d records are there, without a word", trial, name, len(got), len(want))
		}
	}
	t.Logf("%d damages were noticed, with %d%% of the records kept", refused, 100*retained/refused/len(want))
	if refused < 300 || retained < refused*len(want)/2 {
		t.Errorf("%d damages were noticed, %d records kept", refused, retained)
	}
}

// checkRefused checks that a damaged file is not opened. The error must be one line that
// names the command for a repair.
func checkRefused(t *testing.T, path string, d *DamageError) {
	t.Helper()
	db, err := Open(path, manyKeys, nil)
	if err == nil {
		db.Close()
		t.Fatalf("it was opened with %v", d)
	}
	if text := err.Error(); !errors.Is(err, roost.BadConfig) || strings.Contains(text, "\n") ||
		!strings.Contains(text, "roost doctor --repair") || !strings.Contains(text, path) {
		t.Fatalf("got %v", err)
	}
}

// TestReplace checks that a damaged record is named by bucket and key. The repair retains
// all others and leaves the damaged file beside the new one.
func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	want := fill(t, path)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(b, []byte("name 2")) // in the page that was written last, or in an older one
	for ; at >= 0; at = bytes.LastIndex(b[:at], []byte("name 2")) {
		c := slices.Clone(b)
		c[at+8] ^= 5 // more than one bit, because one would be corrected
		if err := os.WriteFile(path, c, 0o600); err != nil {
			t.Fatal(err)
		}
		if d, err := InspectFile(path, manyKeys, nil); err != nil {
			t.Fatal(err)
		} else if d != nil {
			if got := d.Names(); len(got) != 1 || !strings.Contains(got[0], "checksum") ||
				string(d.Damages[0].From) != "name 2" {
				t.Fatalf("got %v", got)
			}
			break
		}
	}
	aside, err := ReplaceDamaged(path, manyKeys, time.Unix(0, 0).UTC(), func(w *ReplacementWriter) error {
		_, err := InspectFile(path, manyKeys, w.Put)
		return err
	})
	if err != nil || aside != path+".damaged-19700101-000000" {
		t.Fatalf("got %q, %v", aside, err)
	}
	if retained, err := os.ReadFile(aside); err != nil || len(retained) != len(b) {
		t.Errorf("the damaged file is not beside it: %v", err)
	}
	delete(want, "small/name 2")
	checkContents(t, path, want)
}

// checkContents opens a file and compares what is in it.
func checkContents(t *testing.T, path string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	db, err := Open(path, manyKeys, func(db *DB) error {
		return db.View(func(tx *Tx) (err error) {
			for _, name := range manyKeys.Buckets {
				err = errors.Join(err, tx.Bucket([]byte(name)).ForEach(func(k, v []byte) error {
					got[name+"/"+string(k)] = string(v)
					return nil
				}))
			}
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	if !maps.Equal(got, want) {
		t.Fatalf("it holds %d records, want %d", len(got), len(want))
	}
}

// TestCorrected flips each bit of a record, in its key, its value and its checksum. The
// original record must be found. For two flipped bits it must not.
func TestCorrected(t *testing.T) {
	key, value := []byte("job 7"), bytes.Repeat([]byte("what it was"), 30)
	raw := append(bytes.Clone(key), appendChecksum("small", key, value)...)
	for at := range 8 * len(raw) {
		one := bytes.Clone(raw)
		one[at/8] ^= 1 << (at % 8)
		if k, v, found := correctFlippedBit("small", one[:len(key)], one[len(key):]); !found || !bytes.Equal(k, key) ||
			!bytes.Equal(v, value) {
			t.Fatalf("bit %d: %q, %q, %v", at, k, v, found)
		}
		two := (at*31 + 17) % (8 * len(raw))
		if one[two/8] ^= 1 << (two % 8); two == at {
			continue
		}
		if k, v, found := correctFlippedBit("small", one[:len(key)], one[len(key):]); found {
			t.Fatalf("bits %d and %d: taken for one, with %q, %q", at, two, k, v)
		}
	}
	for _, raw := range [][]byte{nil, {1, 2, 3}} {
		if _, _, found := correctFlippedBit("small", key, raw); found {
			t.Errorf("%v is put right", raw)
		}
	}
}

// TestMark checks files that have lost their last writes: restored from a copy, removed,
// or truncated to nothing. A file that was never written has lost nothing.
func TestMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	fill(t, path)
	once, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := fill(t, path)
	now, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(words string) {
		t.Helper()
		db, err := Open(path, manyKeys, nil)
		if err == nil {
			db.Close()
		}
		if !errors.Is(err, roost.BadConfig) || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v", err)
		}
	}
	put := func(b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(once)
	refused("what was written since is not in it")
	put(nil)
	refused("it is gone or empty")
	os.Remove(path)
	refused("it is gone or empty")
	put(now)
	mark, err := os.ReadFile(path + markSuffix)
	if err != nil {
		t.Fatal(err)
	}
	// only the mark is damaged: nothing is lost
	for _, bad := range [][]byte{nil, mark[:7], bytes.Repeat([]byte{9}, len(mark))} {
		if err := os.WriteFile(path+markSuffix, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		checkContents(t, path, want)
	}
	put(once)
	refused("what was written since is not in it")
}

// TestUpgrade opens a file of the release before, without checksums. It gets them without
// a loss; but a file that has checksums is never treated as one without.
func TestUpgrade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	old, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	err = old.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("small"))
		for i := 0; i < 3000 && err == nil; i++ {
			key := fmt.Sprint(i)
			want["small/"+key] = "value " + key
			err = b.Put([]byte(key), []byte("value "+key))
		}
		return err
	})
	if err := errors.Join(err, old.Close()); err != nil {
		t.Fatal(err)
	}
	checkContents(t, path, want)
	if c, _, err := readFile(path, &manyKeys, nil); err != nil || c.checksum == nil || c.format != formatVersion {
		t.Fatalf("it has no checksums: %v", err)
	}
	raw, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Update(func(tx *bolt.Tx) error {
		return errors.Join(tx.DeleteBucket(bucketChecksums), tx.DeleteBucket(bucketMeta))
	})
	if err := errors.Join(err, raw.Close(), os.Remove(path+markSuffix)); err != nil {
		t.Fatal(err)
	}
	if db, err := Open(path, manyKeys, nil); err == nil || !strings.Contains(err.Error(), "seal") {
		db.Close()
		t.Fatalf("got %v", err)
	}
}

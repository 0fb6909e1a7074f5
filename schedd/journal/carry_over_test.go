package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boltfile"
	"github.com/roost-batch/roost/internal/damage"
	"github.com/roost-batch/roost/schedd/queue"
)

// oldJournal writes a queue.db of format 2, as releases before the log did.
type oldJournal struct {
	db   *boltfile.DB
	next uint64
}

func openOld(t testing.TB, dir string) *oldJournal {
	t.Helper()
	kind := fileKind(host)
	kind.Format = 0
	db, err := boltfile.Open(filepath.Join(dir, FileName), kind, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &oldJournal{db: db}
}

func (j *oldJournal) append(t testing.TB, events []queue.JobEvent, c *QueueCheckpoint) {
	t.Helper()
	var batch []byte
	for i := range events {
		batch = appendEvent(batch, queue.AppendEvent(nil, &events[i]))
	}
	err := j.db.Update(func(tx *boltfile.Tx) error {
		if len(batch) > 0 {
			if err := tx.Bucket(bucketLog).Put(bigEndian(j.next), batch); err != nil {
				return err
			}
		}
		if c == nil {
			return nil
		}
		c.next = j.next + 1
		return moveBatches(tx, c)
	})
	if err != nil {
		t.Fatal(err)
	}
	j.next++
}

// oldDir writes a directory of format 2 with checkpoints and with batches since. It
// returns the queue, and the texts of its events by job.
func oldDir(t testing.TB, dir string, seed uint64) (*queue.Queue, map[uint64][]string) {
	t.Helper()
	j := openOld(t, dir)
	q := queue.New(host)
	s := newRandomWorkload(seed, q)
	want := map[uint64][]string{}
	for i := range 150 {
		events := s.step(t)
		for _, e := range events {
			want[e.Job] = append(want[e.Job], eventTexts(&e))
		}
		var c *QueueCheckpoint
		if i == 40 || i == 90 {
			c = fullCheckpoint(q)
		}
		j.append(t, events, c)
	}
	err := j.db.Update(func(tx *boltfile.Tx) error {
		return tx.Bucket(bucketCounters).Put(keyIncarnation, bigEndian(7))
	})
	if err := errors.Join(err, j.db.Close()); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(want, func(seq uint64, _ []string) bool { _, there := q.Status(seq); return !there })
	return q, want
}

// asFormat1 turns a directory of format 2 into one of format 1. Format 1 had no
// checksums, and its counters were in another bucket.
func asFormat1(t testing.TB, dir, old string) {
	t.Helper()
	raw, err := bolt.Open(filepath.Join(old, FileName), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Update(func(tx *bolt.Tx) error {
		for bucket, name := range map[string]string{"log": "log", "jobs": "jobs", "events": "events",
			"counters": "meta"} {
			b, err := tx.CreateBucketIfNotExists([]byte(name))
			if err != nil {
				return err
			}
			if _, err := boltfile.InspectFile(filepath.Join(dir, FileName), fileKind(host), func(of string, key,
				value []byte) {
				if of != bucket {
					return
				}
				if bucket == "log" {
					var batch []byte
					err = errors.Join(err, eachEvent(value, func(raw []byte) error {
						batch = append(binary.AppendUvarint(batch, uint64(len(raw))), raw...)
						return nil
					}))
					value = batch
				}
				err = errors.Join(err, b.Put(append([]byte(nil), key...), append([]byte(nil), value...)))
			}); err != nil {
				return err
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, raw.Close()); err != nil {
		t.Fatal(err)
	}
}

// checkCarriedOver opens a directory and compares it with what an older release had.
func checkCarriedOver(t *testing.T, dir string, want *queue.Queue, wantEvents map[uint64][]string) {
	t.Helper()
	for range 2 { // once is enough
		j, q := open(t, dir)
		checkSameQueue(t, q, want)
		for seq, lines := range wantEvents {
			events, err := j.Events(seq)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range events[seq] {
				got = append(got, eventTexts(&e))
			}
			if fmt.Sprint(got) != fmt.Sprint(lines) {
				t.Fatalf("job %d: got\n%s\nwant\n%s", seq, strings.Join(got, "\n"), strings.Join(lines, "\n"))
			}
		}
		if j.db.Format() != logFormat || len(q.TakeUnsaved()) > 0 {
			t.Errorf("the format is %d, and some jobs have no snapshot", j.db.Format())
		}
		j.Close()
	}
	j, _ := open(t, dir)
	defer j.Close()
	if n, err := j.NextIncarnation(); n != 8 || err != nil {
		t.Errorf("the next start is number %d, %v", n, err)
	}
}

// TestCarryOver opens directories of formats 1 and 2. Nothing may be lost, and the log
// must continue.
func TestCarryOver(t *testing.T) {
	for seed := range uint64(3) {
		dir := t.TempDir()
		want, events := oldDir(t, dir, seed)
		first := t.TempDir()
		asFormat1(t, dir, first)
		checkCarriedOver(t, dir, want, events)
		checkCarriedOver(t, first, want, events)
		for _, dir := range []string{dir, first} {
			j, q := open(t, dir)
			s := newRandomWorkload(seed+1, q)
			for range 50 {
				if err := j.Append(s.step(t)); err != nil {
					t.Fatal(err)
				}
			}
			j.Close()
			_, again := open(t, dir)
			checkSameQueue(t, again, q)
		}
	}
}

// TestDowngrade checks that a release before the log refuses a directory with one. This
// one must refuse a directory of a later release, with a sentence, and repair nothing.
func TestDowngrade(t *testing.T) {
	dir := t.TempDir()
	j, _ := open(t, dir)
	j.Close()
	before := readFiles(t, dir)
	kind := fileKind(host)
	kind.Format = 0
	if db, err := boltfile.Open(filepath.Join(dir, FileName), kind, nil); !errors.Is(err, roost.BadConfig) ||
		!strings.Contains(err.Error(), "its format is 3") {
		t.Errorf("as an older release: got %v", err)
		db.Close()
	}
	j, _ = open(t, dir)
	err := j.db.Update(func(tx *boltfile.Tx) error { tx.SetFormat(logFormat + 1); return nil })
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	later := readFiles(t, dir)
	if err := reopenIn(dir); !errors.Is(err, roost.BadConfig) ||
		!strings.Contains(err.Error(), "its format is 4, and this program knows 3: a newer version of Roost wrote it") {
		t.Errorf("got %v", err)
	}
	if report, err := Repair(dir, host, epoch, false); report != nil || err == nil ||
		!strings.Contains(err.Error(), "a newer version of Roost") {
		t.Errorf("a repair: %v, %v", report, err)
	}
	if now := readFiles(t, dir); len(now) != len(before) || string(now[FileName]) != string(later[FileName]) {
		t.Error("the files have changed")
	}
}

// TestRepairOldFormat repairs a damaged file of format 2, which has the present format
// then.
func TestRepairOldFormat(t *testing.T) {
	dir := t.TempDir()
	j := openOld(t, dir)
	q := queue.New(host)
	s := newRandomWorkload(1, q)
	for range 3 {
		events := s.submit(t, 1)
		s.apply(events)
		j.append(t, events, nil)
	}
	j.db.Close()
	flipWordBits(t, filepath.Join(dir, FileName), "k2", 5)
	checkErrorText(t, reopenIn(dir))
	report, err := Repair(dir, host, epoch, false)
	if err != nil || report == nil {
		t.Fatalf("got %v, %v", report, err)
	}
	again, got := open(t, dir)
	if again.db.Format() != logFormat || got.Len() != 2 {
		t.Errorf("got format %d and %d jobs after the repair", again.db.Format(), got.Len())
	}
}

// TestFullDiskInCarryOver carries a directory over on a disk that is full. It must be as
// it was, and be carried over when there is room.
func TestFullDiskInCarryOver(t *testing.T) {
	dir := filepath.Join(damage.SmallDisk(t, "", 2<<20, 0o700), "schedd")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	want, events := oldDir(t, dir, 1)
	ballast := filepath.Join(filepath.Dir(dir), "ballast")
	if err := os.WriteFile(ballast, make([]byte, 4<<20), 0o600); !IsDiskFull(err) {
		t.Fatalf("fill the disk: %v", err)
	}
	for range 2 {
		if err := reopenIn(dir); !IsDiskFull(err) {
			t.Fatalf("on a full disk: %v", err)
		}
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	checkCarriedOver(t, dir, want, events)
}

package cellqueue

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/replica"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/schedd/history"
	"github.com/roost-batch/roost/schedd/journal"
)

// TestRestoredSnapshot checks that a member can be made from a snapshot. It must not
// apply again what the snapshot includes. After a crash in the middle of a replacement
// the journal counts as lost.
func TestRestoredSnapshot(t *testing.T) {
	c := newTestCell(t, 1, replica.SnapshotPolicy{})
	keys := 0
	s := c.lead(c.leader(), 1, &keys)
	for range 80 {
		if err := s.step(); err != nil {
			t.Fatal(err)
		}
	}
	s.stepDown()
	var snapshot bytes.Buffer
	write, err := c.members[0].Snapshot()
	if err == nil {
		err = write(&snapshot)
	}
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Dir: filepath.Join(c.dir, "other"), Name: queueName, Log: slog.New(slog.DiscardHandler),
		Replica: replica.Config{Dir: filepath.Join(c.dir, "log"), Address: "unix:/other",
			Log: slog.New(slog.DiscardHandler)}}
	other, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Restore(bytes.NewReader(snapshot.Bytes())); err != nil {
		t.Fatal(err)
	}
	next := c.members[0].nextBatch()
	if other.nextBatch() != next || other.follower.queue.LastSeq() == 0 ||
		other.follower.queue.LastSeq() != c.members[0].follower.queue.LastSeq() {
		t.Errorf("batch %d of %d, job %d", other.nextBatch(), next, other.follower.queue.LastSeq())
	}
	if got := other.Apply(1, appendEntry(nil, next-1, nil)); !errors.Is(got.(error), journal.ErrStale) {
		t.Errorf("a batch that the snapshot includes: %v", got)
	}
	if err := errors.Join(other.close(), other.history.Close()); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []string{"", "interrupted", "damaged"} {
		switch lost {
		case "interrupted":
			err = os.WriteFile(filepath.Join(config.Dir, importMark), nil, 0o600)
		case "damaged":
			err = os.Remove(filepath.Join(config.Dir, importMark))
			damageJournal(t, config.Dir, snapshot.Bytes())
		}
		if err != nil {
			t.Fatal(err)
		}
		again := &Member{config: config, log: config.Log}
		again.changed.L = &again.mu
		if again.history, err = history.Open(config.Dir, queueName); err != nil {
			t.Fatal(err)
		}
		stored, err := again.openStored()
		if err != nil || stored != (lost == "") || (again.follower.queue.LastSeq() == 0) != (lost != "") {
			t.Errorf("%q: stored %v, job %d, %v", lost, stored, again.follower.queue.LastSeq(), err)
		}
		again.close()
		again.history.Close()
	}
}

// damageJournal makes a journal of an export, and flips bits in its log.
func damageJournal(t *testing.T, dir string, exported []byte) {
	t.Helper()
	if err := journal.Import(dir, queueName, bytes.NewReader(exported)); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(dir, journal.LogName, "*"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	b, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := 100; i < 300; i++ {
		b[i] ^= 0x55
	}
	if err := os.WriteFile(segments[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRecover checks that a queue can be made of a single member when the others are lost
// for good. Nothing is lost that this member has in its log.
func TestRecover(t *testing.T) {
	for name, snapshots := range map[string]replica.SnapshotPolicy{
		"log": {}, "snapshots": {Entries: 25, Interval: 10 * time.Millisecond, Trailing: 5},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestCell(t, 3, snapshots)
			keys := 0
			with := c.leader()
			s := c.lead(with, 9, &keys)
			for range 100 {
				if err := s.step(); err != nil {
					t.Fatal(err)
				}
			}
			s.stepDown()
			next, last := s.member.nextBatch(), s.member.follower.queue.LastSeq()
			config := s.member.config
			for i := range c.members {
				c.stop(i)
			}
			config.Replica.Snapshots = replica.SnapshotPolicy{}
			if err := recoverMember(config); err != nil {
				t.Fatal(err)
			}
			c.addresses = c.addresses[with : with+1]
			c.members, c.dir = c.members[:1], filepath.Join(c.dir, "alone")
			if err := errors.Join(os.Mkdir(c.dir, 0o700),
				os.Rename(filepath.Dir(config.Dir), c.memberDir(0))); err != nil {
				t.Fatal(err)
			}
			c.start(0)
			if c.leader() != 0 || c.members[0].nextBatch() != next || c.members[0].follower.queue.LastSeq() != last {
				t.Errorf("batch %d of %d, job %d of %d", c.members[0].nextBatch(), next,
					c.members[0].follower.queue.LastSeq(), last)
			}
			if _, found := c.members[0].gap(); found {
				t.Error("it has a gap in its history, which nobody can fill")
			}
			c.checkEqual(0, keys)
			s = c.lead(0, 10, &keys)
			if err := s.step(); err != nil {
				t.Fatal(err)
			}
			s.stepDown()
		})
	}
}

// TestHistoryGap checks that a member which got a snapshot fetches from the others the
// jobs that have ended meanwhile. A member with a gap of its own gives none.
func TestHistoryGap(t *testing.T) {
	c := newTestCell(t, 3, replica.SnapshotPolicy{})
	keys := 0
	with := c.leader()
	s := c.lead(with, 3, &keys)
	for range 120 {
		if err := s.step(); err != nil {
			t.Fatal(err)
		}
	}
	s.stepDown()
	c.checkEqual(with, keys)
	behind := c.members[(with+1)%3]
	ended, err := behind.history.Recent(time.Unix(0, 0))
	if err != nil || len(ended) < 4 {
		t.Fatalf("%d jobs have ended, %v", len(ended), err)
	}
	if err := behind.history.Remove(ended[1:]...); err != nil {
		t.Fatal(err)
	}
	write, err := c.members[with].Snapshot()
	var snapshot bytes.Buffer
	if err == nil {
		err = write(&snapshot)
	}
	if err != nil {
		t.Fatal(err)
	}
	other := c.members[(with+2)%3]
	if err := os.WriteFile(other.gapPath(), []byte("0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = behind.fetchHistory(t.Context(), other.config.Replica.Address, 0)
	if rpc.KindOf(err) != roost.Unavailable {
		t.Errorf("from a member with a gap: %v", err)
	}
	if err := behind.Restore(&snapshot); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; c.rest() {
		if _, found := behind.gap(); !found || time.Now().After(deadline) {
			break
		}
	}
	c.checkEqual(with, keys)
}

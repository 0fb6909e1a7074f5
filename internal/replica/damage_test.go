package replica

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/damage"
)

const entriesWritten = 40

// filesBelow returns the files of a directory with their contents, by path.
func filesBelow(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != "lock" {
			all[path], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// restoreFiles restores the contents of a directory. Zeros at the end of a file are not
// written, to save time.
func restoreFiles(t *testing.T, dir string, all map[string][]byte) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for path, b := range all {
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path, bytes.TrimRight(b, "\x00"), 0o600)
		}
		if err == nil {
			err = os.Truncate(path, int64(len(b)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// writeStore writes a log with a snapshot, a term, a vote, and an identity, like a
// replica that is alone.
func writeStore(t *testing.T, dir string) (id memberIdentity) {
	t.Helper()
	id, err := readIdentity(dir, "n1")
	if err != nil {
		t.Fatal(err)
	}
	id.Cell = randomID()
	if err := id.writeTo(dir); err != nil {
		t.Fatal(err)
	}
	s, err := openStore(dir, slog.New(slog.DiscardHandler), func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for index := uint64(1); index <= entriesWritten; index++ {
		if err := s.StoreLog(numberedEntry(index)); err != nil {
			t.Fatal(err)
		}
	}
	only := raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(id.ID), Address: "n1:1"}}}
	_, transport := raft.NewInmemTransport("n1:1")
	defer transport.Close()
	sink, err := s.snapshots.Create(1, 10, 1, only, 1, transport)
	if err == nil {
		_, err = sink.Write(bytes.Repeat([]byte("state"), 500))
	}
	if err = errors.Join(err, sink.Close(), s.SetUint64([]byte(keyTerm), 7), s.SetUint64([]byte("LastVoteTerm"), 7),
		s.Set([]byte("LastVoteCand"), []byte("n1:1"))); err != nil {
		t.Fatal(err)
	}
	return id
}

func numberedEntry(index uint64) *raft.Log {
	return &raft.Log{Index: index, Term: 1 + index/20, Type: raft.LogCommand,
		Data: bytes.Repeat([]byte{byte(index)}, int(20+index*7%90)), AppendedAt: time.Unix(int64(index), 0)}
}

// checkStore compares the contents of a store with what was acknowledged. lost says which
// entries may have been removed.
func checkStore(t *testing.T, s *diskStore, dir string, id memberIdentity, lost string) (retained int) {
	t.Helper()
	if last, err := s.LastIndex(); err != nil || last != entriesWritten {
		t.Fatalf("the last entry is %d, %v", last, err)
	}
	for index := uint64(1); index <= entriesWritten; index++ {
		var got raft.Log
		err := s.GetLog(index, &got)
		want := numberedEntry(index)
		switch {
		case err == nil && bytes.Equal(got.Data, want.Data) && got.Term == want.Term && got.Type == want.Type &&
			len(got.Extensions) == 0:
			retained++
		case lost != "" && (got.Type == raft.LogNoop || index <= 10 && errors.Is(err, raft.ErrLogNotFound)):
		default:
			t.Fatalf("entry %d is %v, %v", index, got, err)
		}
	}
	term, err := s.GetUint64([]byte(keyTerm))
	if err != nil || lost == "" && term != 7 || term < 3 {
		t.Fatalf("the term is %d, %v", term, err)
	}
	if who, err := s.Get([]byte("LastVoteCand")); err != nil || lost == "" && string(who) != "n1:1" {
		t.Fatalf("the vote is for %q, %v", who, err)
	}
	if now, err := readIdentity(dir, "n1"); err != nil || now != id {
		t.Fatalf("it is %v, %v", now, err)
	}
	return retained
}

// TestDamage flips bits and truncates files of a replica. The damage is refused with an
// error that names it, or everything is unchanged. After the repair of a replica that is
// alone, all entries but the named ones are unchanged.
func TestDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "replica")
	id := writeStore(t, dir)
	whole := filesBelow(t, dir)
	paths := slices.Sorted(func(yield func(string) bool) {
		for path := range whole {
			if !yield(path) {
				return
			}
		}
	})
	if len(paths) < 8 {
		t.Fatalf("its files are %v", paths)
	}
	cfg := Config{Dir: dir, Name: "n1", Address: "n1:1", Log: slog.New(slog.DiscardHandler)}
	rng := rand.New(rand.NewPCG(7, 8))
	trials, refused, retained, repaired := damage.TrialCount(t, 80), 0, 0, 0
	if testing.Short() {
		trials = 40
	}
	for trial := range trials {
		restoreFiles(t, dir, whole)
		path := paths[trial%len(paths)]
		name := damageFile(t, rng, path, whole[path])
		s, err := openStore(dir, cfg.Log, func(error) {})
		if err == nil {
			checkStore(t, s, dir, id, "")
			s.close()
			continue
		}
		refused++
		damages := damagesOf(err)
		if len(damages) == 0 || !errors.Is(err, roost.BadConfig) || strings.Contains(err.Error(), "\n") {
			t.Fatalf("%s: %v", name, err)
		}
		before := filesBelow(t, dir)
		if report, err := Repair(cfg, time.Unix(0, 0), true); err != nil || report == nil ||
			!sameFiles(before, filesBelow(t, dir)) {
			t.Fatalf("%s: dry run: %v, %v", name, report, err)
		}
		report, err := Repair(cfg, time.Unix(0, 0), false)
		if err != nil {
			t.Fatalf("%s: %v: %v", name, damages, err)
		}
		if s, err = openStore(dir, cfg.Log, func(err error) {}); err != nil {
			t.Fatalf("%s: after the repair: %v", name, err)
		}
		retained, repaired = retained+checkStore(t, s, dir, id, strings.Join(report.Actions, "; ")), repaired+1
		s.close()
	}
	t.Logf("%d of %d were refused; %d of %d entries kept by repairs", refused, trials, retained,
		repaired*entriesWritten)
	if refused < trials/4 || retained < repaired*entriesWritten*3/4 {
		t.Errorf("%d of %d were refused; %d of %d entries kept by repairs", refused, trials, retained,
			repaired*entriesWritten)
	}
}

func sameFiles(a, b map[string][]byte) bool {
	for path, text := range a {
		if !bytes.Equal(b[path], text) {
			return false
		}
	}
	return true
}

// damageFile damages the contents of a file, but not the zeros at its end, which are room
// for more.
func damageFile(t *testing.T, rng *rand.Rand, path string, whole []byte) string {
	t.Helper()
	used := max(1, len(bytes.TrimRight(whole, "\x00")))
	what, b := damage.DamageOnce(rng, whole[:used])
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(what, "cut") {
		if err := os.Truncate(path, int64(len(whole))); err != nil {
			t.Fatal(err)
		}
	}
	return path + ": " + what
}

// TestLostEnd removes acknowledged entries at the end of the log. The loss is detected,
// and not taken for an incomplete write.
func TestLostEnd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "replica")
	writeStore(t, dir)
	pieces, err := filepath.Glob(filepath.Join(dir, "log", "*.wal"))
	if err != nil || len(pieces) != 1 {
		t.Fatal(pieces, err)
	}
	b, err := os.ReadFile(pieces[0])
	if err != nil {
		t.Fatal(err)
	}
	used := len(bytes.TrimRight(b, "\x00"))
	if err := os.Truncate(pieces[0], int64(used-300)); err != nil {
		t.Fatal(err)
	}
	_, err = openStore(dir, slog.New(slog.DiscardHandler), func(error) {})
	if err == nil || !strings.Contains(err.Error(),
		fmt.Sprintf("to %d are gone from the end of the log", entriesWritten)) {
		t.Fatalf("got %v", err)
	}
}

// damageLog flips a bit in an entry of a replica that does not run.
func damageLog(t *testing.T, dir, entry string) {
	t.Helper()
	pieces, err := filepath.Glob(filepath.Join(dir, "log", "*.wal"))
	for _, piece := range pieces {
		f, oerr := os.OpenFile(piece, os.O_RDWR, 0)
		if err = errors.Join(err, oerr); err != nil {
			break
		}
		b, rerr := io.ReadAll(f)
		if at := bytes.Index(b, []byte(entry)); at >= 0 && rerr == nil {
			_, rerr = f.WriteAt([]byte{b[at] ^ 1}, int64(at))
			entry = ""
		}
		if err = errors.Join(rerr, f.Close()); err != nil || entry == "" {
			break
		}
	}
	if err != nil || entry != "" {
		t.Fatalf("%q was not found: %v", entry, err)
	}
}

// TestDamagedReplica damages the log of one of three replicas. It waits for a leader,
// gets a new identity and all entries, and only then votes.
func TestDamagedReplica(t *testing.T) {
	runCellTest(t, 3, func(t *testing.T, c *testCell) {
		c.startAll()
		c.commitEntries(c.waitForLeader(), "one", "two", "three")
		c.waitForSameState(3)
		c.killReplica("n3:1")
		before, err := readIdentity(c.replicaDir("n3:1"), "n3")
		if err != nil {
			t.Fatal(err)
		}
		damageLog(t, c.replicaDir("n3:1"), "two")
		c.commitEntries(c.waitForLeader(), "four")
		c.startReplica("n3:1")
		c.waitForSameState(4)
		c.waitUntil("it votes", func() bool {
			after := c.nodeAt("n3:1").identity.Load().ID
			return after != before.ID && slices.ContainsFunc(c.waitForLeader().Status().Members,
				func(m CellMember) bool {
					return m.ID == after && m.IsVoter
				})
		})
		if aside, _ := filepath.Glob(filepath.Join(c.replicaDir("n3:1"), "log"+damagedSuffix+"*")); len(aside) != 1 {
			t.Errorf("set aside is %v", aside)
		}
		c.killReplica("n1:1") // there is a majority with its help
		c.commitEntries(c.waitForLeader(), "five")
	})
}

// TestTwoDamaged damages two of three replicas. None of them removes its data: the third
// cannot lead, and an administrator decides.
func TestTwoDamaged(t *testing.T) {
	runCellTest(t, 3, func(t *testing.T, c *testCell) {
		c.startAll()
		c.commitEntries(c.waitForLeader(), "one", "two")
		c.waitForSameState(2)
		for _, addr := range c.addresses {
			c.killReplica(addr)
		}
		ended := make(chan error, 2)
		for _, addr := range c.addresses[1:] {
			damageLog(t, c.replicaDir(addr), "one")
			r, err := Open(c.replicaConfig(addr), &registerMachine{})
			if err != nil {
				t.Fatal(err)
			}
			r.dial = c.network.dialerFor(addr)
			defer func() {
				r.fail(errKilled)
				if err := <-ended; !errors.Is(err, errKilled) {
					t.Error(err)
				}
			}()
			go func() { ended <- r.Run(t.Context()) }()
		}
		c.startReplica(c.addresses[0])
		c.passTime(time.Minute)
		for _, addr := range c.addresses[1:] {
			if _, err := os.Stat(filepath.Join(c.replicaDir(addr), "log")); err != nil {
				t.Errorf("%s has given up what it had: %v", addr, err)
			}
		}
	})
}

// TestDamagedAlone damages a replica that is alone. It does not start with the rest of
// its log. After a repair it has all entries but the damaged one.
func TestDamagedAlone(t *testing.T) {
	runCellTest(t, 1, func(t *testing.T, c *testCell) {
		c.commitEntries(c.startReplica("n1:1"), "one")
		c.commitEntries(c.waitForLeader(), "two", "three")
		c.killReplica("n1:1")
		damageLog(t, c.replicaDir("n1:1"), "two")
		cfg := c.replicaConfig("n1:1")
		r, err := Open(cfg, &registerMachine{})
		if err != nil {
			t.Fatal(err)
		}
		if err = r.Run(t.Context()); !errors.Is(err, roost.BadConfig) || !strings.Contains(err.Error(),
			"entry 5: its checksum is wrong") || !strings.Contains(err.Error(), "roost doctor --repair") {
			t.Fatalf("got %v", err)
		}
		report, err := Repair(cfg, time.Now(), false)
		if err != nil || !strings.Contains(fmt.Sprint(report.Actions), "entry 5 is taken out") {
			t.Fatalf("got %v, %v", report, err)
		}
		n := c.startReplica("n1:1")
		c.waitForLeader()
		if got := n.state.currentState(); got.Count != 2 || got.Value != "three" {
			t.Fatalf("it has %d entries, the last %q", got.Count, got.Value)
		}
		c.commitEntries(n, "four")
	})
}

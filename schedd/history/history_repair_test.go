package history

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/damage"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/adtext"
	"github.com/roost-batch/roost/schedd/table"
)

// writeHistory writes a history of some jobs and removes some of them again. It returns
// the remaining ones by their numbers.
func writeHistory(t testing.TB, dir string) map[uint64]*JobRecord {
	t.Helper()
	records, all := newEndedJobs(t, 40), map[uint64]*JobRecord{}
	for i := range records {
		records[i].Row = &table.JobRow{Owner: "alice", UID: 1000, IsFinal: true,
			Text: adtext.Plain("what lists tell of it")}
	}
	h := open(t, dir)
	for i := 0; i < len(records); i += 5 {
		if err := h.Add(records[i : i+5]); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Remove(3, 17, 18); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range records {
		if seq := records[i].Seq; seq != 3 && seq != 17 && seq != 18 {
			all[seq] = &records[i]
		}
	}
	return all
}

// checkRemaining checks that all jobs of a history are as they were added and that every
// query finds them. It returns their numbers.
func checkRemaining(t *testing.T, dir, what string, want map[uint64]*JobRecord) (list []uint64) {
	t.Helper()
	h, err := Open(dir, "h")
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer h.Close()
	list = recordNumbers(t, h)
	slices.Sort(list)
	for _, seq := range list {
		r := want[seq]
		q, events, err := h.Job(seq)
		if r == nil || err != nil {
			t.Fatalf("%s: job %d: %v", what, seq, err)
		}
		if snapshot, _ := q.Snapshot(seq); !bytes.Equal(snapshot, r.Snapshot) || !reflect.DeepEqual(events, r.Events) {
			t.Fatalf("%s: job %d is not as it was, without a word", what, seq)
		}
		if found, err := h.JobsByKey(r.Key); err != nil || !slices.Contains(found, seq) {
			t.Fatalf("%s: job %d is not found by its key: %v, %v", what, seq, found, err)
		}
	}
	rowFilter := RowFilter{Owners: []string{"alice"}, MakeRow: func(*queue.Queue, uint64) *table.JobRow {
		return &table.JobRow{Owner: "alice"}
	}}
	rows, err := h.Rows(0, 100, rowFilter)
	if recent, rerr := h.Recent(time.Unix(0, 0)); err != nil || rerr != nil || len(rows) != len(list) ||
		len(recent) != len(list) {
		t.Fatalf("%s: %d jobs, %d by their owner, %d by their ends: %v, %v", what, len(list), len(rows),
			len(recent), err, rerr)
	}
	return list
}

// TestDamage damages the file in many ways. The history must refuse to open and name the
// damage, or be complete. After the repair each job in it must be unchanged, each other
// job must be named or reported as unknown, and no index may have an entry for a missing
// job.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	want := writeHistory(t, dir)
	path := filepath.Join(dir, FileName)
	mark, err := os.ReadFile(path + ".mark")
	if err != nil {
		t.Fatal(err)
	}
	refused, out, nameless, right := 0, 0, 0, 0
	damage.ForEach(t, path, 60, func(what string) {
		if err := os.WriteFile(path+".mark", mark, 0o600); err != nil {
			t.Fatal(err)
		}
		report, err := Repair(dir, "h", epoch, true)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if report == nil {
			if list := checkRemaining(t, dir, what, want); len(list) != len(want) {
				t.Fatalf("%s: %d of %d jobs are there, without a word", what, len(list), len(want))
			}
			return
		}
		refused++
		h, err := Open(dir, "h")
		if err == nil {
			h.Close()
			t.Fatalf("%s: it was opened with %v", what, report.Damages)
		}
		if text := err.Error(); !strings.Contains(text, path) || !strings.Contains(text, "roost doctor --repair") {
			t.Fatalf("%s: %v", what, err)
		}
		if report, err = Repair(dir, "h", epoch, false); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		defer os.Remove(report.DamagedPath)
		list, actions := checkRemaining(t, dir, what, want), strings.Join(report.Actions, "\n")
		if strings.Contains(actions, "put right") {
			right++
		}
		for seq := range want {
			named := strings.Contains(actions, fmt.Sprintf("job %v is taken out", roost.JobID{Seq: seq, Host: "h"}))
			switch there := slices.Contains(list, seq); {
			case there && named:
				t.Fatalf("%s: job %d is there:\n%s", what, seq, actions)
			case there:
			case named:
				out++
			case strings.Contains(actions, "without a name") || strings.Contains(actions, "which ones is unknown"):
				nameless++
			default:
				t.Fatalf("%s: job %d is not there, and nothing says so: %v\n%s", what, seq, report.Damages, actions)
			}
		}
	})
	t.Logf("%d refused; %d times bits were put right, %d jobs out by name, %d without", refused, right, out, nameless)
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// TestMissingFile checks that a missing, empty or outdated history does not open as if it
// were empty. After the repair it must not report its jobs as complete.
func TestMissingFile(t *testing.T) {
	dir := t.TempDir()
	writeHistory(t, dir)
	path := filepath.Join(dir, FileName)
	for name, harm := range map[string]func() error{"gone": func() error {
		return os.Remove(path)
	}, "empty": func() error { return os.Truncate(path, 0) }} {
		if err := harm(); err != nil {
			t.Fatal(err)
		}
		h, err := Open(dir, "h")
		if err == nil {
			h.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "gone or empty") || strings.Contains(err.Error(), "is whole") {
			t.Errorf("%s: %v", name, err)
		}
		report, err := Repair(dir, "h", epoch, false)
		if err != nil || !strings.Contains(strings.Join(report.Actions, " "), "which ones is unknown") {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
		if list := checkRemaining(t, dir, name, nil); len(list) > 0 {
			t.Errorf("%s: %v", name, list)
		}
		open(t, dir).Close()
	}
}

// TestRepairNames checks that the index names a job whose record is beyond repair. It
// must do so even where the number in the record is damaged, too, and the adjacent jobs
// must remain.
func TestRepairNames(t *testing.T) {
	dir := t.TempDir()
	want := writeHistory(t, dir)
	path := filepath.Join(dir, FileName)
	key := append([]byte(nil), bigEndian(9)...)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content := want[9].encode()
	for at := bytes.Index(b, append(key, content...)); at >= 0; at = bytes.Index(b, append(key, content...)) {
		b[at+7] ^= 0x40 // job 73
		b[at+20] ^= 2
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := Repair(dir, "h", epoch, false)
	if err != nil || report == nil {
		t.Fatalf("%v, %v", report, err)
	}
	if actions := fmt.Sprint(report.Actions); !strings.Contains(actions, "job 9.h is taken out") {
		t.Errorf("got %s, of %v", actions, report.Damages)
	}
	if list := checkRemaining(t, dir, "job 9", want); slices.Contains(list, 9) || len(list) < len(want)-3 {
		t.Errorf("these are left: %v", list)
	}
}

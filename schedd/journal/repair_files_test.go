package journal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/damage"
)

// TestInterruptedRepair interrupts a repair before and after the new file has its name.
// Before it, another repair must do the same. After it, the journal must open.
func TestInterruptedRepair(t *testing.T) {
	dir := filepath.Join(damage.SmallDisk(t, "", 4<<20, 0o700), "schedd")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	j, q := open(t, dir)
	s := newRandomWorkload(3, q)
	for i := range 60 {
		if err := j.Append(s.step(t)); err != nil {
			t.Fatal(err)
		}
		if i == 30 {
			if err := checkpoint(j, fullCheckpoint(q)); err != nil {
				t.Fatal(err)
			}
		}
	}
	j.Close()
	segment := newestSegment(t, dir)
	b, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	at := len(bytes.TrimRight(b, "\x00")) / 2
	b[at], b[at+9] = b[at]^5, b[at+9]^3
	if err := os.WriteFile(segment, b, 0o600); err != nil {
		t.Fatal(err)
	}
	plan, err := Repair(dir, host, epoch, true)
	if err != nil || plan == nil {
		t.Fatalf("got %v, %v", plan, err)
	}
	ballast := filepath.Join(filepath.Dir(dir), "ballast")
	if err := os.WriteFile(ballast, make([]byte, 8<<20), 0o600); !IsDiskFull(err) {
		t.Fatalf("fill the disk: %v", err)
	}
	info, err := os.Stat(ballast)
	if err == nil {
		err = os.Truncate(ballast, info.Size()-20<<10) // room for the new segment, and not for the new file
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Repair(dir, host, epoch, false); !IsDiskFull(err) {
		t.Fatalf("on a full disk: %v", err)
	}
	if prepared, _ := filepath.Glob(filepath.Join(dir, LogName, "*.new")); len(prepared) != 1 {
		t.Fatalf("the new log is not prepared: %v", prepared)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	again, err := Repair(dir, host, epoch.Add(time.Hour), true)
	if err != nil || fmt.Sprint(again.Damages, again.Actions) != fmt.Sprint(plan.Damages, plan.Actions) {
		t.Fatalf("after a repair without room: got %v, %v, want %v", again, err, plan)
	}
	old := readFiles(t, dir)
	if _, err := Repair(dir, host, epoch.Add(time.Hour), false); err != nil {
		t.Fatal(err)
	}
	if name := newestSegmentOf(readFiles(t, dir)); !bytes.Equal(readFiles(t, dir)[name], old[name]) {
		t.Fatal("the repair itself has replaced the log: the next start is to do it")
	}
	if report, err := Repair(dir, host, epoch, true); report != nil || err != nil {
		t.Errorf("after the repair something is damaged: %v, %v", report, err)
	}
	j, q = open(t, dir)
	if q.Len() == 0 || len(readFiles(t, dir)[newestSegmentOf(old)]) != 0 {
		t.Errorf("%d jobs are there, and the damaged segment", q.Len())
	}
	if err := j.Append(newRandomWorkload(9, q).step(t)); err != nil {
		t.Fatal(err)
	}
}

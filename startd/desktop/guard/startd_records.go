package guard

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/filesum"
	"github.com/roost-batch/roost/internal/wire"
)

// ackTimeout is how long a startd has to act on urgent observations before the guard
// does.
const ackTimeout = 100 * time.Millisecond

// maxGroups bounds the recorded cgroups of one startd. Those of a startd with more are
// frozen through their parents.
const maxGroups = 4096

// startdRecord is the state of one startd.
type startdRecord struct {
	name            string
	connected       bool // it is connected
	pid             int32
	report          *wire.GuardReport // last report; nil: none since the guard started
	parents         []string          // parent directories of its cgroups
	ignoresPresence bool              // its policy ignores people: only a pause freezes its tasks
	pendingAcks     []ackDeadline     // urgent observations without an acknowledgement, oldest first
	frozenBy        uint64            // sequence of the observations that name the tasks frozen by the guard; 0: none
	hasUnsentFreeze bool              // the guard froze tasks and has not reported it yet
	frozenGroups    []string          // cgroups that the guard froze
}

// ackDeadline is the time by which a startd must act.
type ackDeadline struct {
	sequence uint64
	due      time.Time
}

// startdRecords contains the records of all startds by name.
type startdRecords struct {
	records         map[string]*startdRecord
	ignoresPresence func(name string) bool // whether a startd's policy ignores people
}

func (b *startdRecords) record(name string) *startdRecord {
	r := b.records[name]
	if r == nil {
		r = &startdRecord{name: name, ignoresPresence: b.ignoresPresence(name)}
		b.records[name] = r
	}
	return r
}

// sortedRecords lists the records by name.
func (b *startdRecords) sortedRecords() []*startdRecord {
	var all []*startdRecord
	for _, r := range b.records {
		all = append(all, r)
	}
	slices.SortFunc(all, func(x, y *startdRecord) int {
		if x.name < y.name {
			return -1
		}
		return 1
	})
	return all
}

// expectAck makes every startd acknowledge urgent observations. Connected ones have
// ackTimeout, and the others, which cannot act, are due at once.
func (b *startdRecords) expectAck(sequence uint64, paused bool, now time.Time) {
	for _, r := range b.records {
		if r.ignoresPresence && !paused {
			continue
		}
		due := now
		if r.connected {
			due = now.Add(ackTimeout)
		}
		if len(r.pendingAcks) > 0 && r.pendingAcks[len(r.pendingAcks)-1].sequence == sequence {
			continue
		}
		r.pendingAcks = append(r.pendingAcks, ackDeadline{sequence, due})
	}
}

// onDisconnect records that the connection to a startd is lost. All pending
// acknowledgements are due at once.
func (r *startdRecord) onDisconnect(now time.Time) {
	r.connected = false
	for i := range r.pendingAcks {
		r.pendingAcks[i].due = now
	}
}

// onReport applies a report. It returns whether the parent directories of the cgroups
// have changed.
func (r *startdRecord) onReport(report *wire.GuardReport) (moved bool) {
	r.report = report
	r.pendingAcks = slices.DeleteFunc(r.pendingAcks, func(w ackDeadline) bool {
		return w.sequence <= report.GetActed()
	})
	if r.frozenBy != 0 && report.GetActed() >= r.frozenBy {
		r.frozenBy, r.frozenGroups = 0, nil
	}
	for _, dir := range report.GetTaskGroups() {
		d := cgroup.TaskDir(dir)
		if parent := d.Parent(); !slices.Contains(r.parents, parent) && d.Check() == nil {
			r.parents, moved = append(r.parents, parent), true
		}
	}
	return moved
}

// currentReport returns the startd's report with the tasks that the guard froze shown as
// suspended.
func (r *startdRecord) currentReport() *wire.GuardReport {
	if len(r.frozenGroups) == 0 {
		return r.report
	}
	now := proto.CloneOf(r.report)
	for _, t := range now.GetTenants() {
		if t.GetState() == "running" {
			t.State = "suspended"
		}
	}
	return now
}

// nextAckDeadline returns the next time at which an acknowledgement is due.
func (b *startdRecords) nextAckDeadline() (next time.Time, ok bool) {
	for _, r := range b.records {
		if len(r.pendingAcks) > 0 && (!ok || r.pendingAcks[0].due.Before(next)) {
			next, ok = r.pendingAcks[0].due, true
		}
	}
	return next, ok
}

// takeOverdue lists the startds that did not act in time. It removes their pending
// acknowledgements, as the guard acts for them.
func (b *startdRecords) takeOverdue(now time.Time) (late []*startdRecord) {
	for _, r := range b.sortedRecords() {
		if len(r.pendingAcks) > 0 && !now.Before(r.pendingAcks[0].due) {
			r.pendingAcks = nil
			late = append(late, r)
		}
	}
	return late
}

// allAcked reports whether no acknowledgement is pending up to a sequence.
func (b *startdRecords) allAcked(sequence uint64) bool {
	for _, r := range b.records {
		if len(r.pendingAcks) > 0 && r.pendingAcks[0].sequence <= sequence {
			return false
		}
	}
	return true
}

// taskDirs returns all task directories of a startd: those that it reported, and their
// siblings.
func (r *startdRecord) taskDirs() []cgroup.TaskDir {
	var all []cgroup.TaskDir
	for _, dir := range r.report.GetTaskGroups() {
		if len(all) == maxGroups {
			break
		}
		if d := cgroup.TaskDir(dir); d.Check() == nil {
			all = append(all, d)
		}
	}
	for _, parent := range r.parents {
		all = append(all, cgroup.TaskDirs(parent)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// frozenGroups lists the cgroups that the guard froze and no startd has taken over.
func (b *startdRecords) frozenGroups() []string {
	var all []string
	for _, r := range b.sortedRecords() {
		all = append(all, r.frozenGroups...)
	}
	return all
}

// startdRecordsFile is what a restarted guard must know: where the tasks are.
type startdRecordsFile struct {
	Startds []savedStartd `json:"startds"`
}

type savedStartd struct {
	Name    string            `json:"name"`
	Parents []string          `json:"parents"`
	Frozen  []string          `json:"frozen,omitempty"` // cgroups that the guard froze
	Report  *wire.GuardReport `json:"report,omitempty"`
}

func recordsPath(dir string) string { return filepath.Join(dir, "startds.json") }

// save writes the records. It does not sync them, as they are useless after a boot.
func (b *startdRecords) save(dir string) error {
	var f startdRecordsFile
	for _, r := range b.sortedRecords() {
		f.Startds = append(f.Startds, savedStartd{r.name, r.parents, r.frozenGroups, dayFigures(r.report)})
	}
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return replaceFile(recordsPath(dir), filesum.AppendChecksum(text), atomicfile.Write)
}

// dayFigures returns the part of a report that is worth saving: the figures of the day.
// Its tasks may be gone by then, and the directories are found again.
func dayFigures(r *wire.GuardReport) *wire.GuardReport {
	if r == nil {
		return nil
	}
	return &wire.GuardReport{Startd: r.GetStartd(), WorstFreeze: r.GetWorstFreeze(), Given: r.GetGiven(),
		Interruptions: r.GetInterruptions(), Freezes: r.GetFreezes()}
}

// loadRecords reads the saved records, if any.
func loadRecords(dir string) ([]savedStartd, error) {
	text, err := os.ReadFile(recordsPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var f startdRecordsFile
	if err == nil {
		text, err = filesum.VerifyChecksum(text)
	}
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	return f.Startds, err
}

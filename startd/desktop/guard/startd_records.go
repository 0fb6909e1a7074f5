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

// ackTimeout is how long a startd has to act on urgent signs before the guard does.
const ackTimeout = 100 * time.Millisecond

// maxGroups bounds the groups of one startd that the guard remembers. One that has more
// is stopped by its groups' parents.
const maxGroups = 4096

// startdRecord is what is known of one startd.
type startdRecord struct {
	name            string
	connected       bool // it is connected
	pid             int32
	report          *wire.GuardReport // last heard; nil: none in this life of the guard
	parents         []string          // directories below which its groups lie
	ignoresPresence bool              // its policy takes no notice of people: only a pause stops its tasks
	pendingAcks     []ackDeadline     // urgent signs that it has not acted on, the oldest first
	frozenBy        uint64            // the guard froze its tasks itself, and said so in these signs; 0: it did not
	hasUnsentFreeze bool              // it froze, and has not said so yet
	frozenGroups    []string          // what it froze
}

// ackDeadline is for a startd to act.
type ackDeadline struct {
	sequence uint64
	due      time.Time
}

// startdRecords are the records of all startds, by name.
type startdRecords struct {
	records         map[string]*startdRecord
	ignoresPresence func(name string) bool // whether the policy of a startd takes no notice of people
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

// expectAck has every startd act on urgent signs: those that are there within patience,
// the others, of which nobody will, at once.
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

// onDisconnect: the connection to a startd is gone, and nobody will act on what it has
// not acted on.
func (r *startdRecord) onDisconnect(now time.Time) {
	r.connected = false
	for i := range r.pendingAcks {
		r.pendingAcks[i].due = now
	}
}

// onReport folds a report in, and reports whether the directories of its groups' parents
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

// currentReport is its report as it is now: what the guard froze stands still, whatever
// the startd said of it before.
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

// nextAckDeadline returns the next time at which somebody's patience ends.
func (b *startdRecords) nextAckDeadline() (next time.Time, ok bool) {
	for _, r := range b.records {
		if len(r.pendingAcks) > 0 && (!ok || r.pendingAcks[0].due.Before(next)) {
			next, ok = r.pendingAcks[0].due, true
		}
	}
	return next, ok
}

// takeOverdue lists those that did not act in time, and expects no more of them: what
// they had to do is done by others.
func (b *startdRecords) takeOverdue(now time.Time) (late []*startdRecord) {
	for _, r := range b.sortedRecords() {
		if len(r.pendingAcks) > 0 && !now.Before(r.pendingAcks[0].due) {
			r.pendingAcks = nil
			late = append(late, r)
		}
	}
	return late
}

// allAcked reports whether nobody is waited for.
func (b *startdRecords) allAcked(sequence uint64) bool {
	for _, r := range b.records {
		if len(r.pendingAcks) > 0 && r.pendingAcks[0].sequence <= sequence {
			return false
		}
	}
	return true
}

// taskDirs are all task directories of a startd: those it told of, and those that lie
// beside them.
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

// frozenGroups lists what the guard froze itself and no startd has taken over.
func (b *startdRecords) frozenGroups() []string {
	var all []string
	for _, r := range b.sortedRecords() {
		all = append(all, r.frozenGroups...)
	}
	return all
}

// startdRecordsFile is what a guard that is started anew has to know: where tasks are.
type startdRecordsFile struct {
	Startds []savedStartd `json:"startds"`
}

type savedStartd struct {
	Name    string            `json:"name"`
	Parents []string          `json:"parents"`
	Frozen  []string          `json:"frozen,omitempty"` // by the guard
	Report  *wire.GuardReport `json:"report,omitempty"`
}

func recordsPath(dir string) string { return filepath.Join(dir, "startds.json") }

// save writes the books. After a boot they are of no worth, so that no disk has to be
// waited for.
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

// dayFigures is what of a report is worth keeping: the figures of the day. Its tasks may
// be gone by then, and its directories are found again.
func dayFigures(r *wire.GuardReport) *wire.GuardReport {
	if r == nil {
		return nil
	}
	return &wire.GuardReport{Startd: r.GetStartd(), WorstFreeze: r.GetWorstFreeze(), Given: r.GetGiven(),
		Interruptions: r.GetInterruptions()}
}

// loadRecords reads what was saved; nothing where there is nothing.
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

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

	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/filesum"
	"github.com/roost-batch/roost/internal/wire"
)

// patience is how long a startd has to act on urgent signs before the guard does.
const patience = 100 * time.Millisecond

// maxGroups bounds the groups of one startd that the guard remembers. One that has more is stopped by its groups' parents.
const maxGroups = 4096

// record is what is known of one startd.
type record struct {
	name     string
	present  bool // it is connected
	pid      int32
	report   *wire.GuardReport // last heard; nil: none in this life of the guard
	parents  []string          // directories below which its groups lie
	hard     bool              // its policy takes no notice of people: only a pause stops its tasks
	waits    []wait            // urgent signs that it has not acted on, the oldest first
	frozenBy uint64            // the guard froze its tasks itself, and said so in these signs; 0: it did not
	froze    bool              // it froze, and has not said so yet
	frozen   []string          // what it froze
}

// wait is for a startd to act.
type wait struct {
	sequence uint64
	due      time.Time
}

// books are the records of all startds, by name.
type books struct {
	records map[string]*record
	hard    func(name string) bool // whether the policy of a startd takes no notice of people
}

func (b *books) of(name string) *record {
	r := b.records[name]
	if r == nil {
		r = &record{name: name, hard: b.hard(name)}
		b.records[name] = r
	}
	return r
}

// sorted lists the records by name.
func (b *books) sorted() []*record {
	var all []*record
	for _, r := range b.records {
		all = append(all, r)
	}
	slices.SortFunc(all, func(x, y *record) int {
		if x.name < y.name {
			return -1
		}
		return 1
	})
	return all
}

// expect has every startd act on urgent signs: those that are there within patience, the others, of which nobody will, at once.
func (b *books) expect(sequence uint64, paused bool, now time.Time) {
	for _, r := range b.records {
		if r.hard && !paused {
			continue
		}
		due := now
		if r.present {
			due = now.Add(patience)
		}
		if len(r.waits) > 0 && r.waits[len(r.waits)-1].sequence == sequence {
			continue
		}
		r.waits = append(r.waits, wait{sequence, due})
	}
}

// left: the connection to a startd is gone, and nobody will act on what it has not acted on.
func (r *record) left(now time.Time) {
	r.present = false
	for i := range r.waits {
		r.waits[i].due = now
	}
}

// heard folds a report in, and reports whether the directories of its groups' parents have changed.
func (r *record) heard(report *wire.GuardReport) (moved bool) {
	r.report = report
	r.waits = slices.DeleteFunc(r.waits, func(w wait) bool { return w.sequence <= report.GetActed() })
	if r.frozenBy != 0 && report.GetActed() >= r.frozenBy {
		r.frozenBy, r.frozen = 0, nil
	}
	for _, dir := range report.GetTaskGroups() {
		d := cgroup.TaskDir(dir)
		if parent := d.Parent(); !slices.Contains(r.parents, parent) && d.Check() == nil {
			r.parents, moved = append(r.parents, parent), true
		}
	}
	return moved
}

// seen is its report as it is now: what the guard froze stands still, whatever the startd said of it before.
func (r *record) seen() *wire.GuardReport {
	if len(r.frozen) == 0 {
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

// due returns the next time at which somebody's patience ends.
func (b *books) due() (next time.Time, ok bool) {
	for _, r := range b.records {
		if len(r.waits) > 0 && (!ok || r.waits[0].due.Before(next)) {
			next, ok = r.waits[0].due, true
		}
	}
	return next, ok
}

// overdue lists those that did not act in time, and expects no more of them: what they had to do is done by others.
func (b *books) overdue(now time.Time) (late []*record) {
	for _, r := range b.sorted() {
		if len(r.waits) > 0 && !now.Before(r.waits[0].due) {
			r.waits = nil
			late = append(late, r)
		}
	}
	return late
}

// settled reports whether nobody is waited for.
func (b *books) settled(sequence uint64) bool {
	for _, r := range b.records {
		if len(r.waits) > 0 && r.waits[0].sequence <= sequence {
			return false
		}
	}
	return true
}

// groups are all task directories of a startd: those it told of, and those that lie beside them.
func (r *record) groups() []cgroup.TaskDir {
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
func (b *books) frozenGroups() []string {
	var all []string
	for _, r := range b.sorted() {
		all = append(all, r.frozen...)
	}
	return all
}

// booksFile is what a guard that is started anew has to know: where tasks are.
type booksFile struct {
	Startds []startdEntry `json:"startds"`
}

type startdEntry struct {
	Name    string            `json:"name"`
	Parents []string          `json:"parents"`
	Frozen  []string          `json:"frozen,omitempty"` // by the guard
	Report  *wire.GuardReport `json:"report,omitempty"`
}

func booksPath(dir string) string { return filepath.Join(dir, "startds.json") }

// save writes the books. After a boot they are of no worth, so that no disk has to be waited for.
func (b *books) save(dir string) error {
	var f booksFile
	for _, r := range b.sorted() {
		f.Startds = append(f.Startds, startdEntry{r.name, r.parents, r.frozen, summary(r.report)})
	}
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return replace(booksPath(dir), filesum.Append(text), false)
}

// summary is what of a report is worth keeping: the figures of the day. Its tasks may be gone by then, and its directories are found again.
func summary(r *wire.GuardReport) *wire.GuardReport {
	if r == nil {
		return nil
	}
	return &wire.GuardReport{Startd: r.GetStartd(), WorstFreeze: r.GetWorstFreeze(), Given: r.GetGiven(), Interruptions: r.GetInterruptions()}
}

// loadBooks reads what was saved; nothing where there is nothing.
func loadBooks(dir string) ([]startdEntry, error) {
	text, err := os.ReadFile(booksPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var f booksFile
	if err == nil {
		text, err = filesum.Check(text)
	}
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	return f.Startds, err
}

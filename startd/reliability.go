package startd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint"
	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/checkpoint/store"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/filesum"
)

// reliability remembers how often this machine fails: a boot that this startd did not see coming is a failure. It lies on the disk, so that it
// is known after the failure.
type reliability struct {
	path string
	boot string

	mu      sync.Mutex
	history checkpoint.History // until the present boot
	up      time.Duration      // of it
}

// record is what lies on the disk.
type reliabilityRecord struct {
	Boot    string
	Up      time.Duration // of that boot, as last seen
	Left    bool          // the startd was ended on purpose
	History checkpoint.History
}

// openReliability reads what is known, and takes a boot since then that nobody announced for a failure.
func openReliability(dir, boot string) (*reliability, error) {
	r := &reliability{path: filepath.Join(dir, "reliability"), boot: boot, up: boottime()}
	var last reliabilityRecord
	text, err := os.ReadFile(r.path)
	if err == nil {
		text, err = filesum.Check(text)
	}
	if err == nil {
		err = json.Unmarshal(text, &last)
	}
	if err == nil {
		r.history = last.History
		if last.Boot != boot {
			failures := 1
			if last.Left {
				failures = 0
			}
			r.history = last.History.After(last.Up, failures)
		}
	}
	return r, damaged(r.path, err)
}

// damaged is the error of reading a file that is begun anew where it cannot be read; that it is not there is none.
func damaged(path string, err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("%s: %w", path, err)
}

// mtbf is the mean time between failures to reckon with.
func (r *reliability) mtbf() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history.After(boottime(), 0).MTBF()
}

// keep writes down how long the machine is up by now, and whether the startd ends on purpose.
func (r *reliability) keep(left bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	text, err := json.Marshal(reliabilityRecord{Boot: r.boot, Up: boottime(), Left: left, History: r.history})
	if err != nil {
		return err
	}
	if err := os.WriteFile(r.path+".new", filesum.Append(text), 0o600); err != nil {
		return err
	}
	return os.Rename(r.path+".new", r.path)
}

// watch keeps it until ctx ends.
func (r *reliability) watch(ctx context.Context, complain func(error)) {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for left := false; ; {
		if err := r.keep(left); err != nil {
			complain(err)
		}
		if left {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			left = true
		}
	}
}

const keepEvery = 10 * time.Minute

// maxPacking is how many images are compressed at once.
const maxPacking = 2

// openCheckpoints finds out whether this machine takes checkpoints, and says so in its ad.
func (m *machine) openCheckpoints(ad *classad.Ad) (err error) {
	if m.program, err = os.Executable(); err != nil {
		return fmt.Errorf("startd %s: %w", m.own.Name, err)
	}
	if m.images, err = store.Open(filepath.Join(m.checkpointsDir(), "images"), 0); err != nil {
		return err
	}
	m.packing = make(chan struct{}, maxPacking)
	var lost error
	if m.reliability, lost = openReliability(m.own.Dir, m.boot); lost != nil {
		m.log.Warn("how often this machine fails is counted anew", "err", lost)
	}
	if lost := m.today.open(m.own.Dir, time.Now()); lost != nil {
		m.log.Warn("what was given today is counted anew", "err", lost)
	}
	path, err := criu.Find(m.own.CRIU)
	switch {
	case !m.boxes:
		m.criu.Why = "tasks do not run in sandboxes"
	case err != nil:
		m.criu.Why = err.Error()
	default:
		ctx, stop := context.WithTimeout(context.Background(), longestCheck)
		defer stop()
		m.criu = criu.Check(ctx, ownProgram, path, m.checkpointsDir())
	}
	if !m.criu.Works {
		m.log.Warn("no checkpoints of processes are taken", "why", m.criu.Why)
	}
	ad.SetBool(roost.AttrHasCheckpoint, m.criu.Works)
	ad.SetBool(roost.AttrHasSandbox, m.boxes)
	if m.criu.Works {
		ad.SetString(roost.AttrCheckpointBy, "CRIU "+m.criu.Version)
	}
	return nil
}

// longestCheck bounds how long a start waits for the self-test of CRIU.
const longestCheck = 30 * time.Second

// sweepCheckpoints removes images that no attempt has told of, and what an earlier start was making when it ended.
func (m *machine) sweepCheckpoints(adopted []*found) {
	keep := map[store.Key]bool{}
	for _, f := range adopted {
		if f == nil || f.hand.now == nil || f.hand.now.saving.unkept == nil {
			continue
		}
		a, i := f.hand.now, f.hand.now.saving.unkept.GetImage()
		keep[store.Key{
			Schedd: f.hand.file.Schedd, Job: a.ref.Job, Index: int(a.ref.Index), Attempt: roost.Attempt(i.GetAttempt()), Sequence: i.GetSequence(),
		}] = true
	}
	if _, err := m.images.Sweep(func(k store.Key) bool { return keep[k] }); err != nil {
		m.log.Warn("cannot clean up", "err", err)
	}
	for _, pattern := range []string{"*.dump", "*.restore", "*.root", "*.spec", "*.answer", "*.pid"} {
		paths, _ := filepath.Glob(filepath.Join(m.checkpointsDir(), pattern))
		for _, path := range paths {
			os.RemoveAll(path)
		}
	}
}

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
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/filesum"
	"github.com/roost-batch/roost/internal/userfiles"
)

// reliabilityTracker remembers how often this machine fails: a boot that this startd did
// not see coming is a failure. It lies on the disk, so that it is known after the
// failure.
type reliabilityTracker struct {
	path string
	boot string

	mu      sync.Mutex
	history checkpoint.FailureHistory // until the present boot
	uptime  time.Duration             // of it
}

// record is what lies on the disk.
type reliabilityRecord struct {
	Boot    string
	Up      time.Duration // of that boot, as last seen
	Left    bool          // the startd was ended on purpose
	History checkpoint.FailureHistory
}

// openReliability reads what is known, and takes a boot since then that nobody announced
// for a failure.
func openReliability(dir, boot string) (*reliabilityTracker, error) {
	r := &reliabilityTracker{path: filepath.Join(dir, "reliability"), boot: boot, uptime: boottime.Now()}
	var last reliabilityRecord
	text, err := os.ReadFile(r.path)
	if err == nil {
		text, err = filesum.VerifyChecksum(text)
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
	return r, damagedFileError(r.path, err)
}

// damagedFileError is the error of reading a file that is begun anew where it cannot be
// read; that it is not there is none.
func damagedFileError(path string, err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("%s: %w", path, err)
}

// mtbf is the mean time between failures to reckon with.
func (r *reliabilityTracker) mtbf() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history.After(boottime.Now(), 0).MTBF()
}

// saveState writes down how long the machine is up by now, and whether the startd ends on
// purpose.
func (r *reliabilityTracker) saveState(left bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	text, err := json.Marshal(reliabilityRecord{Boot: r.boot, Up: boottime.Now(), Left: left, History: r.history})
	if err != nil {
		return err
	}
	if err := os.WriteFile(r.path+".new", filesum.AppendChecksum(text), 0o600); err != nil {
		return err
	}
	return os.Rename(r.path+".new", r.path)
}

// saveUntilDone keeps it until ctx ends.
func (r *reliabilityTracker) saveUntilDone(ctx context.Context, complain func(error)) {
	tick := time.NewTicker(reliabilitySaveInterval)
	defer tick.Stop()
	for left := false; ; {
		if err := r.saveState(left); err != nil {
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

const reliabilitySaveInterval = 10 * time.Minute

// maxPackSlots is how many images are compressed at once.
const maxPackSlots = 2

// openCheckpoints finds out whether this machine takes checkpoints, and says so in its
// ad.
func (m *claimHost) openCheckpoints(ad *classad.Ad) (err error) {
	if m.program, err = os.Executable(); err != nil {
		return fmt.Errorf("startd %s: %w", m.config.Name, err)
	}
	if m.images, err = store.Open(filepath.Join(m.checkpointsDir(), "images"), 0); err != nil {
		return err
	}
	m.packSlots = make(chan struct{}, maxPackSlots)
	var lost error
	if m.reliability, lost = openReliability(m.config.Dir, m.boot); lost != nil {
		m.log.Warn("how often this machine fails is counted anew", "err", lost)
	}
	if lost := m.stats.load(m.config.Dir, time.Now()); lost != nil {
		m.log.Warn("what was given today is counted anew", "err", lost)
	}
	path, err := criu.Find(m.config.CRIU)
	switch {
	case !m.sandboxed:
		m.criu.Why = "tasks do not run in sandboxes"
	case err != nil:
		m.criu.Why = err.Error()
	default:
		ctx, stop := context.WithTimeout(context.Background(), checkpointCheckTimeout)
		defer stop()
		m.criu = criu.Check(ctx, userfiles.SelfExecutable, path, m.checkpointsDir())
	}
	if !m.criu.Works {
		m.log.Warn("no checkpoints of processes are taken", "why", m.criu.Why)
	}
	ad.SetBool(roost.AttrHasCheckpoint, m.criu.Works)
	ad.SetBool(roost.AttrHasSandbox, m.sandboxed)
	if m.criu.Works {
		ad.SetString(roost.AttrCheckpointBy, "CRIU "+m.criu.Version)
	}
	return nil
}

// checkpointCheckTimeout bounds how long a start waits for the self-test of CRIU.
const checkpointCheckTimeout = 30 * time.Second

// sweepCheckpoints removes images that no attempt has told of, and what an earlier start
// was making when it ended.
func (m *claimHost) sweepCheckpoints(adopted []*adoptedClaim) {
	keep := map[store.ImageKey]bool{}
	for _, f := range adopted {
		if f == nil || f.runner.attempt == nil || f.runner.attempt.checkpoint.unstored == nil {
			continue
		}
		a, i := f.runner.attempt, f.runner.attempt.checkpoint.unstored.GetImage()
		keep[store.ImageKey{
			Schedd: f.runner.file.Schedd, Job: a.ref.Job, Index: int(a.ref.Index),
			Attempt: roost.AttemptNumber(i.GetAttempt()), Sequence: i.GetSequence(),
		}] = true
	}
	if _, err := m.images.Sweep(func(k store.ImageKey) bool { return keep[k] }); err != nil {
		m.log.Warn("cannot clean up", "err", err)
	}
	for _, pattern := range []string{"*.dump", "*.restore", "*.root", "*.spec", "*.answer", "*.pid"} {
		paths, _ := filepath.Glob(filepath.Join(m.checkpointsDir(), pattern))
		for _, path := range paths {
			os.RemoveAll(path)
		}
	}
}

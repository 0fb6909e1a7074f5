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

	"github.com/roost-batch/roost/checkpoint"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/filesum"
	"github.com/roost-batch/roost/startd/claim"
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

// reliabilityRecord is the content of the tracker's file.
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

// damagedFileError returns the error of reading a file that can be begun anew. A missing
// file is no error.
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

// openCheckpoints finds out whether this machine takes checkpoints, and says so in its
// ad.
func (m *startdHost) openCheckpoints(ad *classad.Ad) (err error) {
	server := m.node.ImageServer
	if i := m.node.Images; i != nil && i.CheckpointsAtSubmitNode {
		server = ""
	}
	m.checkpoints, err = claim.OpenCheckpoints(claim.CheckpointOptions{
		Log: m.log, Dir: m.dirs().Checkpoints(), Server: server, Identity: m.identity,
		MTBF: func() time.Duration { return m.reliability.mtbf() },
	})
	if err != nil {
		return fmt.Errorf("startd %s: %w", m.config.Name, err)
	}
	var lost error
	if m.reliability, lost = openReliability(m.config.Dir, m.boot); lost != nil {
		m.log.Warn("how often this machine fails is counted anew", "err", lost)
	}
	if lost := m.stats.load(m.config.Dir, time.Now()); lost != nil {
		m.log.Warn("what was given today is counted anew", "err", lost)
	}
	m.checkpoints.FindCRIU(m.config.CRIU, m.sandboxed, ad)
	return nil
}

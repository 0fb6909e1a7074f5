package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/filesum"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop/idle"
)

// OwnerPause is an owner's no, as it lies in the file pause.json.
//
// One with an end is over when the wall clock says so, or when as much time has passed by
// the clock of instants as lay between its beginning and its end: whichever is first. So
// a wall clock that is set back prolongs nothing. The clock of instants begins anew with
// each boot; then the pause gets what is left by the wall clock, and never more than it
// had in all.
type OwnerPause struct {
	Until  int64  `json:"until"` // unix nanoseconds; 0: for good
	Since  int64  `json:"since"` // unix nanoseconds
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`

	Boot string        `json:"boot,omitempty"` // of which End is an instant
	End  idle.BootTime `json:"end,omitempty"`
}

// newPause is a pause that begins now.
func newPause(until int64, by, reason string, wall time.Time, boot string, now idle.BootTime) *OwnerPause {
	p := &OwnerPause{Until: until, Since: wall.UnixNano(), By: by, Reason: reason}
	if until != 0 {
		p.setEndInstant(wall, boot, now)
	}
	return p
}

// setEndInstant says in the clock of this boot when the pause is over.
func (p *OwnerPause) setEndInstant(wall time.Time, boot string, now idle.BootTime) {
	whole := time.Duration(p.Until - p.Since)
	p.Boot, p.End = boot, now+min(time.Duration(p.Until-wall.UnixNano()), whole)
}

// remaining is how long the pause goes on; nothing, or less, when it is over. A pause for
// good has no end: ok is false.
func (p *OwnerPause) remaining(wall time.Time, now idle.BootTime) (d time.Duration, ok bool) {
	if p.Until == 0 {
		return 0, false
	}
	return min(time.Duration(p.Until-wall.UnixNano()), p.End-now), true
}

func (p *OwnerPause) isOver(wall time.Time, now idle.BootTime) bool {
	d, ends := p.remaining(wall, now)
	return ends && d <= 0
}

func (p *OwnerPause) wire() *wire.Pause {
	if p == nil {
		return nil
	}
	return &wire.Pause{Until: p.Until, By: p.By, Since: p.Since, Reason: p.Reason}
}

// NotAccepted is the reason of the pause with which a desktop joins.
const NotAccepted = "not accepted by its owner yet"

// WriteInitialPause lays down, in the directory of a node, the pause with which a desktop
// begins: until its owner says "roost resume". A pause that is there already is left as
// it is.
func WriteInitialPause(nodeDir string) error {
	dir := filepath.Join(nodeDir, "owner")
	if _, err := os.Stat(pauseFile(dir)); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("pause: %w: %w", roost.NoOutput, err)
	}
	return savePause(dir, newPause(0, "roost join", NotAccepted, time.Now(), "", 0))
}

func pauseFile(dir string) string { return filepath.Join(dir, "pause.json") }

// loadPause reads the pause that is in force; nil for none. A file that makes no sense is
// a pause: somebody said no, and how long is not known.
func loadPause(dir string, wall time.Time, boot string, now idle.BootTime) (*OwnerPause, error) {
	text, err := os.ReadFile(pauseFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	p := &OwnerPause{}
	if err == nil {
		text, err = filesum.VerifyChecksum(text)
	}
	if err == nil {
		err = json.Unmarshal(text, p)
	}
	if err == nil && (p.Until < 0 || p.Since < 0 || p.Until != 0 && p.Until < p.Since) {
		err = fmt.Errorf("its times make no sense")
	}
	if err != nil {
		return &OwnerPause{Since: wall.UnixNano(), By: "roost",
				Reason: "the file of the pause cannot be read; roost resume ends it"},
			fmt.Errorf("%s: %w: %w", pauseFile(dir), roost.NoInput, err)
	}
	if p.Until != 0 && p.Boot != boot {
		p.setEndInstant(wall, boot, now)
		// or each restart of the guard would give it its whole length again, while the
		// wall clock is wrong
		err = savePause(dir, p)
	}
	if p.isOver(wall, now) {
		return nil, errors.Join(err, removePause(dir))
	}
	return p, err
}

// savePause puts the file in place in one step. When it returns nil the pause survives a
// loss of power.
func savePause(dir string, p *OwnerPause) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return replaceFile(pauseFile(dir), filesum.AppendChecksum(text), atomicfile.WriteDurable)
}

func removePause(dir string) error {
	err := os.Remove(pauseFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, atomicfile.SyncDir(dir))
}

// replaceFile replaces a file that everybody may read in one step, with write.
func replaceFile(path string, text []byte, write func(string, []byte, fs.FileMode) error) error {
	if err := write(path, text, 0o644); err != nil {
		return fmt.Errorf("%s: %w: %w", path, roost.NoOutput, err)
	}
	return nil
}

// bootID names this start of the kernel.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

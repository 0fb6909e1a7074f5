package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/filesum"
	"github.com/roost-batch/roost/internal/wire"
)

// OwnerPause is the owner's pause of the machine, as stored in pause.json.
//
// A pause with an end is over when the wall clock reaches the end, or when the whole
// length of the pause has passed by boot time, whichever is first. So setting the wall
// clock back does not prolong it. Boot time restarts with each boot; then the pause gets
// the rest by the wall clock, but never more than its whole length.
type OwnerPause struct {
	Until  int64  `json:"until"` // unix nanoseconds; 0: no end
	Since  int64  `json:"since"` // unix nanoseconds
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`

	Boot string         `json:"boot,omitempty"` // ID of the boot to which End refers
	End  roost.BootTime `json:"end,omitempty"`
}

// newPause returns a pause that begins now.
func newPause(until int64, by, reason string, wall time.Time, boot string, now roost.BootTime) *OwnerPause {
	p := &OwnerPause{Until: until, Since: wall.UnixNano(), By: by, Reason: reason}
	if until != 0 {
		p.setEndInstant(wall, boot, now)
	}
	return p
}

// setEndInstant sets the end of the pause in boot time.
func (p *OwnerPause) setEndInstant(wall time.Time, boot string, now roost.BootTime) {
	whole := time.Duration(p.Until - p.Since)
	p.Boot, p.End = boot, now+min(time.Duration(p.Until-wall.UnixNano()), whole)
}

// remaining returns how long the pause lasts; it is over at 0 or less. A pause without an
// end has ok false.
func (p *OwnerPause) remaining(wall time.Time, now roost.BootTime) (d time.Duration, ok bool) {
	if p.Until == 0 {
		return 0, false
	}
	return min(time.Duration(p.Until-wall.UnixNano()), p.End-now), true
}

func (p *OwnerPause) isOver(wall time.Time, now roost.BootTime) bool {
	d, ends := p.remaining(wall, now)
	return ends && d <= 0
}

func (p *OwnerPause) wire() *wire.Pause {
	if p == nil {
		return nil
	}
	return &wire.Pause{Until: p.Until, By: p.By, Since: p.Since, Reason: p.Reason}
}

// NotAccepted is the reason of the initial pause of a desktop.
const NotAccepted = "not accepted by its owner yet"

// WriteInitialPause writes, in a node's directory, the pause with which a desktop joins
// the pool. It lasts until the owner runs "roost resume". An existing pause is left
// unchanged.
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

// loadPause reads the pause in force; nil for none. An unreadable file counts as a pause
// without an end, as the owner did pause the machine.
func loadPause(dir string, wall time.Time, boot string, now roost.BootTime) (*OwnerPause, error) {
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
		// otherwise each restart of the guard would restart its whole length while the
		// wall clock is wrong
		err = savePause(dir, p)
	}
	if p.isOver(wall, now) {
		return nil, errors.Join(err, removePause(dir))
	}
	return p, err
}

// savePause writes the file atomically. When it returns nil the pause survives a power
// failure.
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

// replaceFile replaces a file that everybody may read, with write.
func replaceFile(path string, text []byte, write func(string, []byte, fs.FileMode) error) error {
	if err := write(path, text, 0o644); err != nil {
		return fmt.Errorf("%s: %w: %w", path, roost.NoOutput, err)
	}
	return nil
}

// bootID returns the name of this boot; empty where the kernel does not say it.
func bootID() string {
	id, _ := boottime.BootID()
	return id
}

package startd

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/filesum"
	"github.com/roost-batch/roost/startd/cpuspeed"
)

// A machine's CPUs are measured once per boot, when it has had no claim for a while. The
// figures are in its ad from then on, and another start of the startd reads them.

// How long the machine must have had no claim, and how often that is looked at.
const (
	speedIdleTime      = time.Minute
	speedCheckInterval = 10 * time.Second
)

// cpuSpeed is what was measured; nil: nothing yet.
type cpuSpeed struct {
	measured atomic.Pointer[cpuspeed.Speed]
}

// speedRecord is the file of it.
type speedRecord struct {
	Boot  string
	Speed cpuspeed.Speed
}

func (m *startdHost) speedPath() string { return filepath.Join(m.config.Dir, "cpu_speed") }

// load reads what was measured since the machine was booted.
func (s *cpuSpeed) load(path, boot string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return damagedFileError(path, err)
	}
	text, err := filesum.VerifyChecksum(data)
	var r speedRecord
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err == nil && r.Boot == boot {
		s.measured.Store(&r.Speed)
	}
	return damagedFileError(path, err)
}

// save writes it.
func (s *cpuSpeed) save(path, boot string) error {
	text, err := json.Marshal(speedRecord{boot, *s.measured.Load()})
	if err == nil {
		err = os.WriteFile(path+".new", filesum.AppendChecksum(text), 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	return err
}

// describe writes the figures into the machine's ad, unless its administrator has set
// them.
func (s *cpuSpeed) describe(ad *classad.Ad) {
	speed := s.measured.Load()
	if speed == nil {
		return
	}
	for name, value := range map[string]int64{roost.AttrKFlops: speed.KFlops, roost.AttrMips: speed.Mips} {
		if _, isSet := ad.Lookup(name); !isSet && value > 0 {
			ad.SetInt(name, value)
		}
	}
}

// measureSpeed waits until the machine is idle, and measures its CPUs.
func (m *startdHost) measureSpeed(ctx context.Context) {
	if err := m.speed.load(m.speedPath(), m.boot); err != nil {
		m.log.Warn("the speed of the CPUs is measured anew", "err", err)
	}
	if m.speed.measured.Load() != nil {
		return
	}
	tick := time.NewTicker(speedCheckInterval)
	defer tick.Stop()
	for idle := time.Duration(0); idle < speedIdleTime; idle += speedCheckInterval {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		claims := make(chan int, 1)
		m.postEvent(loopQuery{func(l *machineLoop) { claims <- l.table.Len() }, make(chan struct{})})
		select {
		case n := <-claims:
			if n > 0 {
				idle = -speedCheckInterval
			}
		case <-m.loopDone:
			return
		}
	}
	done := make(chan cpuspeed.Speed)
	go func() {
		// The thread is not given back to the others: it becomes less urgent.
		runtime.LockOSThread()
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), 19); err != nil {
			m.log.Debug("the measurement of the CPUs has the priority of the startd", "err", err)
		}
		done <- cpuspeed.Measure()
	}()
	speed := <-done
	m.speed.measured.Store(&speed)
	if err := m.speed.save(m.speedPath(), m.boot); err != nil && !errors.Is(err, os.ErrNotExist) {
		m.log.Warn("the speed of the CPUs cannot be stored", "err", err)
	}
	m.log.Info("measured a CPU", "kflops", speed.KFlops, "mips", speed.Mips)
	m.postEvent(loopQuery{func(l *machineLoop) { l.publishAd(true) }, make(chan struct{})})
}

package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// DiskReserve is room on the schedd's disk for its log alone. Whatever fills that disk,
// what has been decided has to be written: ends of tasks, and removals above all, which
// give room back. A file that takes the room is emptied when the log finds none. From
// then on nothing new is taken, until there is room for the file again. The spool ends
// where free space is no more than the reserve, so that it is never what the reserve is
// used for.
type DiskReserve struct {
	Dir  string
	Size int64 // bytes
	log  *slog.Logger

	mu       sync.Mutex
	missing  bool          // the reserve is not there
	stuck    chan struct{} // closed while the log cannot be written for want of room
	waiting  int           // writes that wait for room; stuck is closed if there are any
	loggedAt time.Time     // when that was last logged
}

// Bounds of the reserve, and how often it is looked for room again.
const (
	ReserveName         = "reserve"
	largeReserve        = 64 << 20
	smallReserve        = 128 << 10
	reservePart         = 8 // of a small disk, one part
	reserveInterval     = 2 * time.Second
	diskFullLogInterval = time.Minute // how often it is logged that there is no room
	diskFullRetry       = 200 * time.Millisecond
)

// NewDiskReserve returns the reserve of a directory's disk; RunMaintainer makes the file.
func NewDiskReserve(dir string, log *slog.Logger) *DiskReserve {
	r := &DiskReserve{Dir: dir, log: log, stuck: make(chan struct{}), Size: largeReserve}
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) == nil {
		r.Size = min(max(int64(fs.Blocks)*fs.Bsize/reservePart, smallReserve), largeReserve)
	}
	return r
}

func (r *DiskReserve) path() string { return filepath.Join(r.Dir, ReserveName) }

// FreeBytes is how many bytes anybody may take.
func (r *DiskReserve) FreeBytes() int64 {
	var fs unix.Statfs_t
	if unix.Statfs(r.Dir, &fs) != nil {
		return 0
	}
	return int64(fs.Bavail) * fs.Bsize
}

// Allocate takes the room, if there is so much and half as much again.
func (r *DiskReserve) Allocate() error {
	f, err := os.OpenFile(r.path(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() >= r.Size && info.Sys().(*syscall.Stat_t).Blocks*512 >= r.Size {
		return nil // an earlier start has made it
	}
	if free := r.FreeBytes(); free < r.Size+r.Size/2 {
		return fmt.Errorf("%s: %w: %v are free", r.Dir, syscall.ENOSPC, roost.Bytes(free))
	}
	err = unix.Fallocate(int(f.Fd()), 0, 0, r.Size)
	if errors.Is(err, unix.EOPNOTSUPP) {
		_, err = io.CopyN(f, zeroReader{}, r.Size)
	}
	if err != nil {
		return errors.Join(err, f.Truncate(0))
	}
	return f.Sync()
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Release gives the room to the log, and reports whether there was any.
func (r *DiskReserve) Release() bool {
	r.mu.Lock()
	r.missing = true
	r.mu.Unlock()
	info, err := os.Stat(r.path())
	return err == nil && info.Size() > 0 && os.Truncate(r.path(), 0) == nil
}

// RunMaintainer makes the reserve, and makes it again when there is room, until ctx ends.
func (r *DiskReserve) RunMaintainer(ctx context.Context) {
	for {
		err := r.Allocate()
		r.mu.Lock()
		short := err != nil && IsDiskFull(err)
		if short != r.missing {
			if short {
				r.log.Error("there is no room for the job log's reserve: submissions are refused", "dir", r.Dir,
					"error", err)
			} else {
				r.log.Info("there is room again: submissions are taken", "dir", r.Dir)
			}
		}
		r.missing = short
		r.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(reserveInterval):
		}
	}
}

// RefusalReason says why nothing new is taken now, nil if it is.
func (r *DiskReserve) RefusalReason() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missing {
		return r.IsFull()
	}
	return nil
}

// IsFull is the error that nothing new is taken for want of room.
func (r *DiskReserve) IsFull() error {
	return fmt.Errorf("%w: no space left on %s, where this schedd keeps its jobs; make room there, then submit again",
		roost.Exhausted, r.Dir)
}

// RetryWrite runs write until it finds room. What the reserve had is its first help; then
// it waits until somebody makes room, or ctx ends. Several goroutines may call it.
func (r *DiskReserve) RetryWrite(ctx context.Context, write func() error) error {
	waits := false
	defer func() {
		if waits {
			r.addWaiting(-1)
		}
	}()
	for {
		err := write()
		if err == nil || !IsDiskFull(err) {
			return err
		}
		if r.Release() {
			r.log.Error("the disk is full: the job log uses its reserve, and submissions are refused until there "+
				"is room", "dir", r.Dir, "error", err)
			continue
		}
		if !waits {
			waits = true
			r.addWaiting(1)
		}
		if r.isLogDue() {
			r.log.Error("the disk is full: the job log cannot be written, and everything waits", "dir", r.Dir,
				"error", err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(diskFullRetry):
		}
	}
}

// addWaiting changes the number of writes that wait for room.
func (r *DiskReserve) addWaiting(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.waiting += n; {
	case n > 0 && r.waiting == 1:
		close(r.stuck)
	case n < 0 && r.waiting == 0:
		r.stuck = make(chan struct{})
	}
}

// isLogDue reports whether it is to be logged again that there is no room.
func (r *DiskReserve) isLogDue() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.loggedAt) <= diskFullLogInterval {
		return false
	}
	r.loggedAt = time.Now()
	return true
}

// StuckChannel is closed when the log cannot be written for want of room.
func (r *DiskReserve) StuckChannel() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stuck
}

// IsDiskFull reports whether an error is that there is no room on a disk.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

package operate

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// diskLatency is how long a disk takes to store a page for good. Each commit of a daemon
// waits for that.
type diskLatency struct {
	Directory string     `json:"directory"`
	Fsync     timeSpread `json:"fsync"`
	FreeBytes int64      `json:"free_bytes"`
}

// Bounds of the measurement of a disk.
const (
	fsyncCount = 12
	fsyncSize  = 4096
)

// measureDisk stores pages in a file without a name in a directory, one after another. It
// ends early with ctx, after one page at least.
func measureDisk(ctx context.Context, dir string) (d diskLatency, err error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return d, fmt.Errorf("measure %s: %w", dir, err)
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	var times []time.Duration
	page := make([]byte, fsyncSize)
	for i := 0; i < fsyncCount && (i == 0 || ctx.Err() == nil); i++ {
		page[0] = byte(i)
		began := time.Now()
		if _, err := f.Write(page); err != nil {
			return d, fmt.Errorf("measure %s: %w", dir, err)
		}
		if err := unix.Fdatasync(fd); err != nil {
			return d, fmt.Errorf("measure %s: %w", dir, err)
		}
		times = append(times, time.Since(began))
	}
	d.Directory, d.Fsync = dir, spreadOf(times)
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return d, fmt.Errorf("measure %s: %w", dir, err)
	}
	d.FreeBytes = int64(st.Bavail) * st.Bsize
	return d, nil
}

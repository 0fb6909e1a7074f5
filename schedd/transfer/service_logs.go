package transfer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/outputfile"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// A task of a service is started again for as long as the service exists, and each
// attempt leaves output. The spool keeps that of the newest attempt that has ended, and
// of earlier ones for a time, as far as it is not more than one attempt may have.

// streamStart returns how much of a stream the machine has removed before what is left.
func (c *OutputFetch) streamStart(stderr bool) int64 {
	if stderr {
		return c.Exited.GetStderrStart()
	}
	return c.Exited.GetStdoutStart()
}

// streamTimes returns when a stream was written, as the machine says.
func (c *OutputFetch) streamTimes(stderr bool) []byte {
	if stderr {
		return c.Exited.GetStderrTimes()
	}
	return c.Exited.GetStdoutTimes()
}

// retainServiceLogs makes room in the spool after a stream was stored, or could not be
// because of err. A disk that is full does not keep a service from
// being started again: its earlier output goes, and at last this one.
func (c *OutputFetch) retainServiceLogs(stderr bool, err error) error {
	bounds := *c.logs
	full := journal.IsDiskFull(err)
	if full {
		bounds.Retain = 0
	} else if err != nil {
		return c.wireError(err)
	}
	if eerr := c.SpoolFiles.ExpireLogs(c.Attempt.Task.Job.Seq, c.Attempt.Task.Index, bounds, time.Now()); eerr != nil {
		c.log.Warn("earlier output of a service cannot be removed", "attempt", c.Attempt, "error", eerr)
	}
	if full && !c.waitedForSpool {
		c.waitedForSpool = true
		return fmt.Errorf("%w: %w", roost.Unavailable, err) // there may be room now
	}
	if full {
		c.log.Warn("output of a service is lost", "attempt", c.Attempt, "stderr", stderr, "error", err, "cure",
			"make room in "+c.SpoolFiles.Dir)
	}
	return nil
}

// spooledLog is a file of the spool.
type spooledLog struct {
	index   int
	attempt uint64
	stream  string
	path    string
	size    roost.Bytes // on disk
	stored  time.Time
}

// ExpireLogs removes the output of earlier attempts of a service's task that is too old
// or too much. Index -1 means all tasks. The newest output of each stream stays.
func (s *SpoolDir) ExpireLogs(seq uint64, index int, bounds jobad.LogSpec, now time.Time) error {
	dir := filepath.Join(s.Dir, strconv.FormatUint(seq, 10))
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	type streamID struct {
		index  int
		stream string
	}
	streams := map[streamID][]spooledLog{}
	for _, e := range entries {
		if l, ok := parseSpooled(dir, e); ok && (index < 0 || l.index == index) {
			id := streamID{l.index, l.stream}
			streams[id] = append(streams[id], l)
		}
	}
	var errs []error
	for _, logs := range streams {
		slices.SortFunc(logs, func(a, b spooledLog) int { return int(int64(b.attempt) - int64(a.attempt)) })
		used := roost.Bytes(0)
		for i, l := range logs[1:] {
			used += l.size
			if i < roost.MaxEarlierLogs && used <= bounds.Total() && now.Sub(l.stored) < bounds.Retain {
				continue
			}
			for _, path := range []string{l.path, l.path + outputfile.TimesSuffix} {
				if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
					errs = append(errs, fmt.Errorf("spool: %w", err))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// spoolSize is how much of a file is on disk: what the machine removed of it is a hole.
func spoolSize(info fs.FileInfo) roost.Bytes {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return roost.Bytes(st.Blocks * 512) // the unit of st_blocks (stat(2))
	}
	return roost.Bytes(info.Size())
}

// parseSpooled reads the name of a file of the spool, as Path makes it.
func parseSpooled(dir string, e fs.DirEntry) (l spooledLog, ok bool) {
	parts := strings.Split(e.Name(), ".")
	if len(parts) != 3 || parts[2] != "out" && parts[2] != "err" {
		return l, false
	}
	index, ierr := strconv.Atoi(parts[0])
	attempt, aerr := strconv.ParseUint(parts[1], 10, 32)
	info, err := e.Info()
	if ierr != nil || aerr != nil || err != nil || !info.Mode().IsRegular() {
		return l, false
	}
	return spooledLog{index, attempt, parts[2], filepath.Join(dir, e.Name()), spoolSize(info), info.ModTime()}, true
}

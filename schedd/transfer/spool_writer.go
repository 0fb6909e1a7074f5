package transfer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/outputfile"
	"github.com/roost-batch/roost/schedd/journal"
)

// SpoolDir is a directory of captured output: one file for each attempt and stream, below
// a directory for each job. Beside it is one with its times. It leaves the reserve of its
// disk to the job log.
type SpoolDir struct {
	Dir     string
	Reserve *journal.DiskReserve
}

// RemoveJob removes all output of a job.
func (s *SpoolDir) RemoveJob(seq uint64) error {
	return os.RemoveAll(filepath.Join(s.Dir, strconv.FormatUint(seq, 10)))
}

// Store writes a captured stream to disk. What the machine has removed of it, up to
// start, becomes a hole. Nothing is written for an empty one, and nothing is left of one
// that does not come to its end.
func (s *SpoolDir) Store(a roost.AttemptID, stderr bool, start int64, data io.Reader) error {
	path := s.Path(a, stderr)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	if start > 0 && start <= maxStreamStart {
		_, err = f.Seek(start, io.SeekStart)
	}
	if err == nil {
		_, err = io.Copy(&spoolWriter{to: f, reserve: s.Reserve}, data)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("spool: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}

// StoreTimes writes when a captured stream was written beside it. Without room for that
// the stream has no times.
func (s *SpoolDir) StoreTimes(a roost.AttemptID, stderr bool, times []byte) error {
	if marks := outputfile.DecodeTimeMarks(times); len(marks) > 0 && s.Reserve.FreeBytes() > s.Reserve.Size {
		return atomicfile.Write(s.Path(a, stderr)+outputfile.TimesSuffix, marks.Encode(), 0o600)
	}
	return nil
}

// Times returns when a stream in the spool was written. None means that it is not known.
func (s *SpoolDir) Times(a roost.AttemptID, stderr bool) (outputfile.TimeMarks, error) {
	b, err := os.ReadFile(s.Path(a, stderr) + outputfile.TimesSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return outputfile.DecodeTimeMarks(b), err
}

// maxStreamStart is the greatest offset of what is left of a stream. The largest files of
// ext4 are not much longer.
const maxStreamStart = 1 << 43

// spoolWriter writes to the spool as long as more than the reserve is free on its disk.
type spoolWriter struct {
	to         *os.File
	reserve    *journal.DiskReserve
	checkAfter int64 // bytes that may be written before the disk is looked at again
}

// spoolStep is how many bytes are written between two looks at the disk.
const spoolStep = 1 << 20

// Write implements io.Writer.
func (w *spoolWriter) Write(p []byte) (int, error) {
	if w.checkAfter -= int64(len(p)); w.checkAfter < 0 {
		if free := w.reserve.FreeBytes(); free < w.reserve.Size+int64(len(p)) {
			return 0, fmt.Errorf("%s: %w: %v are free, and the last %v are the job log's", w.to.Name(), syscall.ENOSPC,
				roost.Bytes(free), roost.Bytes(w.reserve.Size))
		}
		w.checkAfter = min(spoolStep, w.reserve.Size/2) - int64(len(p))
	}
	return w.to.Write(p)
}

// Path is where a captured stream is kept.
func (s *SpoolDir) Path(a roost.AttemptID, stderr bool) string {
	stream := "out"
	if stderr {
		stream = "err"
	}
	name := fmt.Sprintf("%d.%d.%s", a.Task.Index, a.Attempt, stream)
	return filepath.Join(s.Dir, strconv.FormatUint(a.Task.Job.Seq, 10), name)
}

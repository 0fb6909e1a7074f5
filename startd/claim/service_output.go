package claim

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/outputfile"
	"github.com/roost-batch/roost/startd/starterclient"
)

// retainedSuffix ends the name of the file with what is left of a stream at its end.
const retainedSuffix = ".kept"

// logBounds returns how much captured output of an attempt stays here; zero for an
// attempt of no service. That is no more than a task of the machine may have.
func (h *Runner) logBounds(a *Attempt) (b outputfile.Bounds) {
	p := serviceProgram(a.record.Service)
	if p.GetLogs() == nil {
		return b
	}
	b.Files = int(min(p.GetLogs().GetFiles(), roost.MaxLogFiles))
	b.Size = roost.Bytes(min(max(p.GetLogs().GetSize(), 0), int64(roost.MaxLogSize)))
	if b.Files < roost.MinLogFiles || b.Size < roost.MinLogSize {
		return outputfile.Bounds{}
	}
	if most := h.machine.outputLimit; most > 0 && b.Total() > most {
		b.Size = max(most/roost.Bytes(b.Files), 1)
	}
	return b
}

// retainOutput copies what is left of a captured stream of a service, and returns how
// much it had before. It does nothing for a stream of which nothing was removed. Whoever
// follows the stream still reads the file that the task wrote.
func (h *Runner) retainOutput(a *Attempt, stderr bool) (start int64) {
	bounds := h.logBounds(a)
	if bounds.Files == 0 {
		return 0
	}
	path := starterclient.CapturedPath(a.record.IO, stderr)
	info, err := os.Lstat(path)
	if err != nil || info.Size() <= int64(bounds.Total()) {
		return 0
	}
	start, _, err = outputfile.CopyData(path+retainedSuffix, path, int64(bounds.Total()))
	if err != nil {
		h.machine.log.Warn("the output of a service cannot be kept", "attempt", a.Label(), "err", err)
		if rerr := os.Remove(path + retainedSuffix); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			h.machine.log.Warn("cannot clean up", "attempt", a.Label(), "err", rerr)
		}
		return 0
	}
	return start
}

// outputTimes returns when a captured stream was written that ends at an offset, encoded;
// nil if that is not known.
func (h *Runner) outputTimes(a *Attempt, stderr bool, end int64) []byte {
	if end == 0 {
		return nil
	}
	marks, err := outputfile.ReadTimeMarks(starterclient.CapturedPath(a.record.IO, stderr), time.Now())
	if err != nil {
		h.machine.log.Warn("the times of captured output cannot be read", "attempt", a.Label(), "err", err)
		return nil
	}
	return marks.Before(end).Encode()
}

// EndedOutput returns where the captured output is of an attempt that has ended.
func (a *Attempt) EndedOutput(stderr bool) string {
	path := starterclient.CapturedPath(a.record.IO, stderr)
	if serviceProgram(a.record.Service).GetLogs() == nil {
		return path
	}
	if info, err := os.Lstat(path + retainedSuffix); err == nil && info.Mode().IsRegular() {
		return path + retainedSuffix
	}
	return path
}

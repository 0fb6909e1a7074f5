package jobad

import (
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/roost-batch/roost"
)

// CheckpointPolicy says when and how checkpoints of an attempt are taken: internal/wire's
// CheckpointPolicy in Go.
type CheckpointPolicy struct {
	Self     bool          // the program saves its own state
	Interval time.Duration // between two; 0: the machine chooses; below 0: only on the occasions below, and when asked
	OnVacate bool
	AtLimit  bool // before the walltime ends
	Signal   int32
	ExitCode int32
	Files    []string
	Key      []byte // secret
	Next     uint64
}

// CheckpointSettings is what an ad says of checkpoints.
type CheckpointSettings struct {
	CheckpointPolicy
	intervalStated bool // the job says itself how often
}

// minCheckpointRun is the walltime from which a task is checkpointed from time to time by
// default. One that ends sooner has little to lose.
const minCheckpointRun = 30 * time.Minute

// checkpointSettings reads what the ad says of checkpoints; nil when none are taken.
// Batch tasks are checkpointed unless the job forbids it, streams only when it asks for
// it: a service must not be frozen.
func (r *adReader) checkpointSettings() *CheckpointSettings {
	stream := r.text(roost.AttrAppClass, roost.AppBatch) == roost.AppStream
	self := r.boolean(roost.AttrCheckpointSelf, false)
	if !r.boolean(roost.AttrCheckpoint, !stream) {
		return nil
	}
	s := &CheckpointSettings{intervalStated: r.has(roost.AttrCheckpointEvery)}
	s.Self = self
	s.OnVacate, s.AtLimit = r.boolean(roost.AttrCheckpointVacate, true), r.boolean(roost.AttrCheckpointAtLimit, false)
	s.Interval = time.Duration(r.number(roost.AttrCheckpointEvery, 0, -1, maxSeconds)) * time.Second
	s.ExitCode = int32(r.number(roost.AttrCheckpointCode, 0, 0, 255))
	if name := r.text(roost.AttrCheckpointSignal, ""); name != "" {
		var err error
		if s.Signal, err = roost.SignalNumber(name); err != nil {
			r.fail(roost.AttrCheckpointSignal, err.Error())
		}
	}
	if r.has(roost.AttrCheckpointFiles) {
		var ok bool
		if s.Files, ok = r.ad.Strings(roost.AttrCheckpointFiles); !ok {
			r.fail(roost.AttrCheckpointFiles, "a list of strings is wanted")
		}
	}
	for _, f := range s.Files {
		if !fs.ValidPath(path.Clean(f)) || path.Clean(f) == "." {
			r.fail(roost.AttrCheckpointFiles, fmt.Sprintf("%q does not lie below the task's scratch directory", f))
		}
	}
	if !self && (s.Signal != 0 || s.ExitCode != 0 || len(s.Files) > 0) {
		r.fail(roost.AttrCheckpointSelf, "a signal, an exit code and files are for tasks that save their own state")
	}
	return s
}

// PolicyFor is what an attempt of a task is to do, with that walltime; nil for nothing.
func (s *CheckpointSettings) PolicyFor(walltime time.Duration, key []byte, next uint64) *CheckpointPolicy {
	if s == nil || len(key) == 0 {
		return nil
	}
	p := s.CheckpointPolicy
	p.Key, p.Next = key, next
	switch {
	case s.intervalStated:
	case s.Self && s.Signal == 0: // it saves when it likes: what lies there at any other time may be half written
		p.Interval = -1
	case walltime > 0 && walltime < minCheckpointRun:
		p.Interval = -1
	}
	return &p
}

package claim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/startd/meter"
	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// errOwnerSuspended marks what is not done because the machine's owner wants the
// machine.
var errOwnerSuspended = errors.New("its machine is its owner's now")

// OwnerSuspension suspends a claim for the owner of the machine. It does not wait for
// the claim's runner, which may be busy with files for long: the loop says what is
// wanted, and it is so. The runner says under the same lock what it is about to do, and
// does it not.
//
// The task stands still in a directory of its own, above the one by which it is suspended
// and saved (cgroup.Hold); without groups its starter stops its processes by signals.
// Only while a checkpoint is taken of a task that leaves it is eased: CRIU lets the
// processes that it has hold of run its own code, which nobody could who is held, and the
// user's code does not run, as the task is suspended before.
type OwnerSuspension struct {
	mu           sync.Mutex
	freezeReason string // why the claim is to stand still; empty: it may run
	released     bool
	// the first process of a task is one of ours, that is not stopped by signals
	sandboxed    bool
	group        *cgroup.ClaimGroup         // nil: there is none
	starter      *starterclient.Starter     // nil: there is none
	startPending *starterclient.TaskAttempt // the starter was told to run it, and has not said how that went
	cancelDump   context.CancelCauseFunc    // ends the checkpoint that has hold of the task; nil: none has
}

// attach says by what the claim is held.
func (s *OwnerSuspension) attach(group *cgroup.ClaimGroup, by *starterclient.Starter, sandboxed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.group, s.starter, s.sandboxed = group, by, sandboxed
	if s.freezeReason != "" {
		s.apply()
	}
}

// detach says that there is nothing left to hold.
func (s *OwnerSuspension) detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.group, s.starter, s.startPending = nil, nil, nil
}

// Set has the claim suspended from now on, or with an empty reason lets it go on. Of a
// task that is just being started nothing is left: it has done nothing yet, and its
// starter waits for it to begin.
func (s *OwnerSuspension) Set(why string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freezeReason = why
	if why != "" && s.startPending != nil && s.starter != nil {
		return s.starter.Vacate(starterclient.StopCmd{Attempt: *s.startPending, Cause: proto.Vacated, Fast: true,
			Reason: why})
	}
	return s.apply()
}

// apply makes it so.
func (s *OwnerSuspension) apply() (err error) {
	on := s.freezeReason != "" && !s.released && s.startPending == nil
	if on && s.cancelDump != nil {
		s.cancelDump(fmt.Errorf("%w: %s", errOwnerSuspended, s.freezeReason))
	}
	if s.group != nil && s.group.FreezeDir() != "" {
		err = s.group.FreezeForOwner(on)
	}
	if s.starter != nil {
		err = errors.Join(err, s.starter.SetFrozen(on))
	}
	return err
}

// reason is for what reason the claim is to stand still; empty when it may run.
func (s *OwnerSuspension) reason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.freezeReason
}

// startTask has the starter run an attempt, unless the owner is there.
func (s *OwnerSuspension) startTask(a starterclient.TaskAttempt, start func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.freezeReason != "" {
		return fmt.Errorf("%w: %s", errOwnerSuspended, s.freezeReason)
	}
	s.startPending = &a
	return start()
}

// startConfirmed says that the starter has answered.
func (s *OwnerSuspension) startConfirmed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.startPending == nil {
		return
	}
	if s.startPending = nil; s.freezeReason != "" {
		s.apply()
	}
}

// beginDump says that a checkpoint is about to get hold of the task, and how it is ended.
// One that the task leaves with is taken in any case.
func (s *OwnerSuspension) beginDump(stop context.CancelCauseFunc, leaves bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.freezeReason != "" && !leaves {
		return fmt.Errorf("%w: %s", errOwnerSuspended, s.freezeReason)
	}
	s.cancelDump = stop
	if s.released = leaves; leaves && s.freezeReason != "" {
		return s.apply()
	}
	return nil
}

// endDump says that the checkpoint does not need the task any more.
func (s *OwnerSuspension) endDump() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancelDump = nil
	if s.released {
		s.released = false
		if s.freezeReason != "" {
			s.apply()
		}
	}
}

// quiesced reports whether everything of the claim that has to stand still does. What was
// being started has to be gone.
func (s *OwnerSuspension) quiesced() bool {
	if s.abortingStart() {
		return false
	}
	group, by, sandboxed := s.quiesceTarget()
	switch {
	case group == nil && by == nil:
		return true
	case group == nil || group.FreezeDir() == "":
		return meter.TreeStopped(by.PID(), sandboxed)
	}
	return group.Quiesced()
}

// abortingStart reports whether a task was being started when it was to be suspended,
// and has not ended. Of one that is restored from an image some may run by then. The
// guard stops it when it hears nothing in time, and what is frozen does not die in
// version 1: it is let go on.
func (s *OwnerSuspension) abortingStart() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.freezeReason == "" || s.startPending == nil {
		return false
	}
	if s.group != nil && s.group.WasFrozenOutside() {
		s.group.FreezeForOwner(false)
	}
	return true
}

// quiesceTarget returns by what the claim is held; nothing while it need not stand still.
// In version 1 what was forked meanwhile is stopped as well: under the lock, or it would
// be while a checkpoint is taken.
func (s *OwnerSuspension) quiesceTarget() (group *cgroup.ClaimGroup, by *starterclient.Starter, sandboxed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.released || s.freezeReason == "" || s.startPending != nil {
		return nil, nil, false
	}
	if s.group != nil && s.group.IsVersion1() && s.group.FreezeDir() != "" {
		s.group.FreezeForOwner(true)
	}
	return s.group, s.starter, s.sandboxed
}

// Kill kills what is left of the task, past its starter.
func (s *OwnerSuspension) Kill() {
	s.mu.Lock()
	group := s.group
	s.mu.Unlock()
	if group != nil {
		group.KillAll()
	}
}

// IsFrozenOutside reports whether the claim was found frozen, by whoever did that.
func (s *OwnerSuspension) IsFrozenOutside() bool {
	s.mu.Lock()
	group := s.group
	s.mu.Unlock()
	return group != nil && group.WasFrozenOutside()
}

// FreezeDir returns the directory by which others freeze the claim when we do not;
// empty: there is none.
func (s *OwnerSuspension) FreezeDir() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.group == nil {
		return ""
	}
	return s.group.FreezeDir()
}

// quiesceTimeout bounds how long is waited for tasks that do not come to rest. Such a
// task waits in the kernel for a disk or a server.
const quiesceTimeout = 5 * time.Second

// WaitQuiesced waits until everything has come to rest that is to be suspended, and
// returns how many claims have not.
func WaitQuiesced(all []*OwnerSuspension) (left int) {
	end := time.Now().Add(quiesceTimeout)
	for wait := 200 * time.Microsecond; ; wait = min(2*wait, 5*time.Millisecond) {
		rest := all[:0:0]
		for _, s := range all {
			if !s.quiesced() {
				rest = append(rest, s)
			}
		}
		if all = rest; len(all) == 0 || time.Now().After(end) {
			return len(all)
		}
		time.Sleep(wait)
	}
}

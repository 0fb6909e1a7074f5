package startd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/startd/starter"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// errOwner marks what is not done because the machine's owner wants it for himself.
var errOwner = errors.New("its machine is its owner's now")

// holding is how a claim stands still for the owner of the machine. It does not wait for the claim's hand, which may be busy with files for long: the
// loop says what is wanted, and it is so. The hand says under the same lock what it is about to do, and does it not.
//
// The task stands still in a directory of its own, above the one by which it is suspended and saved (cgroup.Hold); without groups its starter stops its
// processes by signals. Only while a checkpoint is taken of a task that leaves it is eased: CRIU lets the processes that it has hold of run its own code,
// which nobody could who is held, and the user's code does not run, as the task is suspended before.
type holding struct {
	mu      sync.Mutex
	wanted  string // why the claim is to stand still; empty: it may run
	eased   bool
	boxed   bool                    // the first process of a task is one of ours, that is not stopped by signals
	group   *cgroup.Group           // nil: there is none
	starter *starter.Starter        // nil: there is none
	flight  *starter.Attempt        // the starter was told to run it, and has not said how that went
	dump    context.CancelCauseFunc // ends the checkpoint that has hold of the task; nil: none has
}

// equip says by what the claim is held.
func (s *holding) equip(group *cgroup.Group, by *starter.Starter, boxed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.group, s.starter, s.boxed = group, by, boxed
	if s.wanted != "" {
		s.apply()
	}
}

// unequip says that there is nothing left to hold.
func (s *holding) unequip() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.group, s.starter, s.flight = nil, nil, nil
}

// want has the claim stand still from now on, or with an empty reason lets it go on. Of a task that is just being started nothing is left: it has done
// nothing yet, and its starter waits for it to begin.
func (s *holding) want(why string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = why
	if why != "" && s.flight != nil && s.starter != nil {
		return s.starter.Vacate(starter.Stop{Attempt: *s.flight, Cause: proto.Vacated, Fast: true, Reason: why})
	}
	return s.apply()
}

// apply makes it so.
func (s *holding) apply() (err error) {
	on := s.wanted != "" && !s.eased && s.flight == nil
	if on && s.dump != nil {
		s.dump(fmt.Errorf("%w: %s", errOwner, s.wanted))
	}
	if s.group != nil && s.group.HoldDir() != "" {
		err = s.group.Hold(on)
	}
	if s.starter != nil {
		err = errors.Join(err, s.starter.Hold(on))
	}
	return err
}

// why is for what reason the claim is to stand still; empty when it may run.
func (s *holding) why() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted
}

// launch has the starter run an attempt, unless the owner is there.
func (s *holding) launch(a starter.Attempt, start func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted != "" {
		return fmt.Errorf("%w: %s", errOwner, s.wanted)
	}
	s.flight = &a
	return start()
}

// landed says that the starter has answered.
func (s *holding) landed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flight == nil {
		return
	}
	if s.flight = nil; s.wanted != "" {
		s.apply()
	}
}

// saving says that a checkpoint is about to get hold of the task, and how it is ended. One that the task leaves with is taken in any case.
func (s *holding) saving(stop context.CancelCauseFunc, leaves bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted != "" && !leaves {
		return fmt.Errorf("%w: %s", errOwner, s.wanted)
	}
	s.dump = stop
	if s.eased = leaves; leaves && s.wanted != "" {
		return s.apply()
	}
	return nil
}

// saved says that the checkpoint does not need the task any more.
func (s *holding) saved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dump = nil
	if s.eased {
		s.eased = false
		if s.wanted != "" {
			s.apply()
		}
	}
}

// stands reports whether everything of the claim that has to stand still does. What was being started has to be gone.
func (s *holding) stands() bool {
	if s.leaving() {
		return false
	}
	group, by, boxed := s.stopped()
	switch {
	case group == nil && by == nil:
		return true
	case group == nil || group.HoldDir() == "":
		return treeStands(by.PID(), boxed)
	}
	return group.Stands()
}

// leaving reports whether a task was being started when it was to stand still, and its end is yet to come. Of one that goes on from an image some may run by then.
// The guard stops it when it hears nothing in time, and what stands still does not die in version 1: it is let go on.
func (s *holding) leaving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted == "" || s.flight == nil {
		return false
	}
	if s.group != nil && s.group.Held() {
		s.group.Hold(false)
	}
	return true
}

// stopped returns by what the claim is held; nothing while it need not stand still. In version 1 what was forked meanwhile is stopped as well: under the lock,
// or it would be while a checkpoint is taken.
func (s *holding) stopped() (group *cgroup.Group, by *starter.Starter, boxed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.eased || s.wanted == "" || s.flight != nil {
		return nil, nil, false
	}
	if s.group != nil && s.group.Freezer() && s.group.HoldDir() != "" {
		s.group.Hold(true)
	}
	return s.group, s.starter, s.boxed
}

// kill kills what is left of the task, past its starter.
func (s *holding) kill() {
	s.mu.Lock()
	group := s.group
	s.mu.Unlock()
	if group != nil {
		group.Clear()
	}
}

// held reports whether the claim was found standing still, by whoever did that.
func (s *holding) held() bool {
	s.mu.Lock()
	group := s.group
	s.mu.Unlock()
	return group != nil && group.Held()
}

// directory is where others hold the claim when we do not; empty: nowhere.
func (s *holding) directory() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.group == nil {
		return ""
	}
	return s.group.HoldDir()
}

// longestStop bounds how long is waited for tasks that do not come to rest: one waits in the kernel for a disk or a server.
const longestStop = 5 * time.Second

// allStand waits until everything stands still that has to, and returns how many do not.
func allStand(all []*holding) (left int) {
	end := time.Now().Add(longestStop)
	for wait := 200 * time.Microsecond; ; wait = min(2*wait, 5*time.Millisecond) {
		rest := all[:0:0]
		for _, s := range all {
			if !s.stands() {
				rest = append(rest, s)
			}
		}
		if all = rest; len(all) == 0 || time.Now().After(end) {
			return len(all)
		}
		time.Sleep(wait)
	}
}

package claim

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/startd/slot"
	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// SpareStarter is a starter for a claim that is not there yet. It has its directories,
// its control group and the root of its sandboxes, under an id that was reserved for the
// claim: the first task does not wait until they are made. What the claim may use is set
// when there is one.
type SpareStarter struct {
	ID      slot.ClaimID
	machine *Machine
	dir     string
	group   *cgroup.ClaimGroup // nil: there is none
	starter *starterclient.Starter

	mu      sync.Mutex
	onEvent func(starterclient.Event) // of the claim; nil: there is none yet
	died    *starterclient.ProcessDied
	gone    chan struct{} // closed when the starter is dead
}

// spareLease is the lease of a spare, in case its startd is killed; the startd renews it.
const spareLease = 5 * time.Minute

// SpareRenewal is how often a spare is to be renewed.
const SpareRenewal = spareLease / 3

// What is told of spares (Host.Post).
type (
	// SpareReadyEvent says that a spare is there for a claim.
	SpareReadyEvent struct{ Spare *SpareStarter }

	// SpareFailedEvent says that a spare could not be made, or is dead.
	SpareFailedEvent struct {
		ID  slot.ClaimID
		Err error
	}

	// SpareGoneEvent says that nothing of a spare is left that was discarded.
	SpareGoneEvent struct{ ID slot.ClaimID }
)

// MakeSpare makes a spare, and posts a SpareReadyEvent or a SpareFailedEvent.
func (m *Machine) MakeSpare(id slot.ClaimID) {
	s := &SpareStarter{ID: id, machine: m, dir: m.claimDir(id), gone: make(chan struct{})}
	if err := s.create(); err != nil {
		if s.starter == nil {
			close(s.gone)
		}
		s.remove()
		m.host.Post(SpareFailedEvent{id, err})
		return
	}
	m.host.Post(SpareReadyEvent{s})
}

func (s *SpareStarter) create() (err error) {
	m, io := s.machine, s.machine.dirs.ClaimIO(s.ID)
	if err = errors.Join(os.Mkdir(s.dir, 0o700), os.Mkdir(io, 0o711)); err != nil {
		return err
	}
	if s.group, err = m.groups.createSpare(s.ID); err != nil {
		return err
	}
	opts := starterclient.SpawnOptions{Binary: m.starterPath, Dir: s.dir, Lease: spareLease, Events: s.deliver,
		Nested: m.sandboxed && makesNestedSandboxes()}
	if s.group != nil {
		opts.Join, opts.TaskGroup = s.group.Add, s.group.TaskDir()
	}
	if s.starter, err = starterclient.Spawn(opts); err != nil {
		return err
	}
	return s.starter.Prepare(starterclient.StartCmd{
		UID: m.lastUser.Load(), IO: io, Stdout: starterclient.Captured, Stderr: starterclient.Captured,
		Sandbox: proto.Sandbox{Wanted: m.sandboxed},
	})
}

// deliver passes an event on to the claim. Before there is one, none but the death of the
// starter can come.
func (s *SpareStarter) deliver(e starterclient.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	died, dead := e.(starterclient.ProcessDied)
	if dead {
		s.died = &died
		defer close(s.gone)
	}
	switch {
	case s.onEvent != nil:
		s.onEvent(e)
	case dead:
		go s.machine.host.Post(SpareFailedEvent{s.ID, died.Err})
	}
}

// attach has the events go to the claim, also one that has come already.
func (s *SpareStarter) attach(onEvent func(starterclient.Event)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onEvent = onEvent
	if s.died != nil {
		onEvent(*s.died)
	}
}

// RenewLease renews the lease of the spare. It may be called until a claim has it.
func (s *SpareStarter) RenewLease() { s.starter.RenewLease(spareLease) }

// Discard ends a spare that no claim has, and posts a SpareGoneEvent.
func (s *SpareStarter) Discard() {
	s.remove()
	s.machine.host.Post(SpareGoneEvent{s.ID})
}

// remove ends the starter and removes what was made.
func (s *SpareStarter) remove() {
	s.endStarter()
	err := errors.Join(os.RemoveAll(s.dir), os.RemoveAll(s.machine.dirs.ClaimIO(s.ID)))
	if err != nil {
		s.machine.log.Warn("cannot remove a spare starter", "claim", s.ID, "err", err)
	}
}

// endStarter ends the starter, and removes its control group.
func (s *SpareStarter) endStarter() {
	if s.starter != nil {
		s.starter.Release()
	}
	if s.group != nil {
		if err := s.group.Delete(); err != nil { // which kills a starter that does not answer
			s.machine.log.Error("processes are left", "claim", s.ID, "err", err)
		}
	}
	<-s.gone
}

// useSpare has the claim take its spare over, and reports whether it could. If not, the
// claim makes its own.
func (h *Runner) useSpare(lease time.Duration) bool {
	s := h.spare
	h.spare = nil
	h.dirs.ioMade = true
	err := h.machine.groups.limitSpare(s.group, h.file, h.openableDevices())
	if err == nil {
		err = s.starter.RenewLease(lease)
	}
	if err != nil {
		h.machine.log.Warn("a spare starter cannot be used", "claim", h.id, "err", err)
		s.endStarter()
		return false
	}
	h.group, h.starter = s.group, s.starter
	s.attach(func(e starterclient.Event) { h.queue.Put(starterEvent{e}) })
	return true
}

// releaseSpare ends a spare of an earlier start of the startd.
func releaseSpare(dir string) {
	s, _, err := starterclient.Adopt(dir, func(starterclient.Event) {})
	if err == nil {
		s.Release()
		s.Close()
	}
}

// claimDir returns the directory of what a startd must know of a claim after a restart.
func (m *Machine) claimDir(id slot.ClaimID) string {
	return filepath.Join(m.dirs.Claims(), id.String())
}

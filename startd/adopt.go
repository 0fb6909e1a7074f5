package startd

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/files"
	"github.com/roost-batch/roost/startd/slot"
	"github.com/roost-batch/roost/startd/starter"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// found is a claim that an earlier start has left.
type found struct {
	hand  *hand
	state starter.State
	gone  bool // its starter is dead
}

// adoptAll takes over the claims of earlier starts, and removes what is left of others. It runs before anything else does.
func (l *loop) adoptAll(claims []slot.ClaimID) {
	all := make([]*found, len(claims))
	var looking sync.WaitGroup
	for i, id := range claims {
		looking.Go(func() { all[i] = l.m.find(id) })
	}
	looking.Wait()
	keep := make(map[string]bool)
	slices.SortStableFunc(all, func(a, b *found) int { return cmp.Compare(a.rank(), b.rank()) })
	for _, f := range all {
		if f != nil && l.adopt(f) {
			keep[filepath.Join(l.m.scratchDir(), f.hand.id.String())], keep[filepath.Join(l.m.ioDir(), f.hand.id.String())] = true, true
		}
	}
	if l.lent == nil { // it had an owner, who was there
		for _, h := range l.hands {
			if h.still.held() {
				l.hold(h, "")
			}
		}
	}
	l.m.sweepScratch(keep)
	l.m.sweepCheckpoints(all)
	l.sweepGroups()
}

// sweepGroups removes the groups of claims that are not in the books. Nothing of theirs runs any more but what has escaped from its starter.
func (l *loop) sweepGroups() {
	keep := make(map[string]bool)
	for id := range l.hands {
		keep[id.String()] = true
	}
	l.m.groups.sweep(keep)
}

// adoptTries is how often a starter that is there and does not answer is asked again: to give it up is to lose its task.
const adoptTries = 4

// find connects to the starter of a claim. Nil: there is nothing to take over, and nothing is left of it.
func (m *machine) find(id slot.ClaimID) *found {
	dir := filepath.Join(m.claimsDir(), id.String())
	file, err := readClaimFile(dir)
	if err != nil || file.BootID != m.boot || slot.ClaimID(file.ID) != id {
		m.log.Info("claim of an earlier boot or a broken one is dropped", "claim", id, "err", err)
		m.drop(dir, file)
		return nil
	}
	f := &found{hand: m.newHand(file)}
	f.hand.cred, f.hand.group = m.accounts.credential(&file), m.groups.find(id)
	f.hand.findFiles()
	for range adoptTries {
		f.hand.starter, f.state, err = starter.Adopt(dir, func(e starter.Event) { f.hand.box.put(said{e}) })
		if !errors.Is(err, roost.Unavailable) {
			break
		}
	}
	if err != nil {
		f.gone = true
		if f.state.Phase == proto.Idle {
			m.log.Info("idle claim without a starter is dropped", "claim", id, "err", err)
			m.drop(dir, file)
			return nil
		}
	}
	if _, err := readAttempt(dir); err != nil && f.state.Phase != proto.Idle { // it was written before the starter was told of the attempt
		m.log.Error("what is known of the attempt on a claim is damaged on disk: it is ended, and runs again", "claim", id, "err", err)
		m.drop(dir, file)
		return nil
	}
	f.hand.still.equip(f.hand.group, f.hand.starter, m.boxes)
	if f.hand.attemptFile, err = os.OpenFile(filepath.Join(dir, "attempt"), os.O_WRONLY|os.O_CREATE, 0o600); err != nil {
		m.log.Error("claim cannot be taken over", "claim", id, "err", err)
		m.drop(dir, file)
		return nil
	}
	return f
}

// drop removes a claim that nobody will ask for, and the processes that may be left of it.
func (m *machine) drop(dir string, file claimFile) {
	if file.Cookie != "" && file.BootID == m.boot {
		if _, err := starter.Sweep(file.Cookie, m.boxPath(slot.ClaimID(file.ID))); err != nil {
			m.log.Error("processes are left", "claim", file.ID, "err", err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		m.log.Warn("cannot remove a claim", "dir", dir, "err", err)
	}
}

// adopt enters a claim into the books and starts its hand. An attempt that has ended is entered as one that runs: the hand says the rest, in the
// way that it always does.
func (l *loop) adopt(f *found) bool {
	h := f.hand
	claim := slot.Claim{
		ID: h.id, Grant: slot.GrantID{Epoch: h.file.Epoch, ID: h.file.Grant}, Schedd: h.file.Schedd, Owner: h.file.Owner, About: h.file.About,
		UID: h.file.UID, GID: h.file.GID, Class: h.file.Class, MayWait: h.file.MayWait, Resources: h.file.Resources, State: slot.Idle,
		Lease: boottime() + h.file.Lease, Period: h.file.Lease,
	}
	if f.state.Phase != proto.Idle {
		h.now = resumed(h.file.Schedd, f.state.Attempt, h.dir, h.cred)
		h.present.Store(h.now)
		h.measureFrom(h.now, h.now.record.Origin)
		h.resumeSaving(h.now, f.state, f.state.Phase == proto.Running && !f.gone)
		claim.State, claim.Attempt, claim.Running = slot.Busy, h.now.id, f.state.Phase == proto.Running && !f.gone
		claim.Began = slot.Instant(f.state.Since)
		claim.Terms = slot.Terms{Walltime: h.now.record.Walltime, Expected: h.now.record.Expected, Once: h.now.record.Once}
		claim.Over = f.state.Phase == proto.Ended
		if claim.Running {
			h.watchGPUs(h.now.id)
			h.expectTerminal(h.now)
			h.reopenReach(h.now)
		}
	}
	l.hands[h.id] = h
	go h.run()
	var err error
	if h.file.Placed != nil {
		claim.Placement, err = l.core.Free().Restore(*h.file.Placed)
	}
	if err == nil || claim.State != slot.Busy || claim.Over {
		err = l.core.Adopted(boottime(), claim)
	}
	if err != nil {
		l.m.log.Error("claim cannot be taken over", "claim", h.id, "err", err)
		h.box.put(dismiss{})
		return false
	}
	l.pids[h.id] = f.state.PID
	if l.m.own.Pin && h.file.Cores != nil {
		l.pinned[h.id] = h.file.Cores
	}
	l.m.log.Info("claim taken over", "claim", h.id, "schedd", claim.Schedd, "phase", f.state.Phase, "starter gone", f.gone)
	if f.gone {
		h.box.put(said{starter.Gone{Last: f.state, Err: starter.ErrGone}})
	}
	return true
}

// rank puts claims on which something runs before those that hold something, and these before those that wait: an idle claim may have passed
// on what it held, and its file may not say so yet.
func (f *found) rank() int {
	switch {
	case f == nil:
		return 3
	case f.state.Phase == proto.Running:
		return 0
	case f.hand.file.Placed != nil:
		return 1
	}
	return 2
}

// sweepScratch removes what nobody uses.
func (m *machine) sweepScratch(keep map[string]bool) {
	m.sweepIO(keep)
	entries, err := os.ReadDir(m.scratchDir())
	if err != nil {
		m.log.Warn("cannot look for old scratch directories", "err", err)
		return
	}
	for _, e := range entries {
		path := filepath.Join(m.scratchDir(), e.Name())
		if keep[path] {
			continue
		}
		if e.IsDir() {
			err = m.removeForeign(path)
		} else {
			err = os.Remove(path)
		}
		if err != nil {
			m.log.Warn("cannot clean up", "path", path, "err", err)
		}
	}
}

// sweepIO removes directories of attempts that nobody uses. Nobody but us writes there.
func (m *machine) sweepIO(keep map[string]bool) {
	entries, err := os.ReadDir(m.ioDir())
	if err != nil {
		m.log.Warn("cannot look for old output", "err", err)
		return
	}
	for _, e := range entries {
		if path := filepath.Join(m.ioDir(), e.Name()); !keep[path] {
			if err := os.RemoveAll(path); err != nil {
				m.log.Warn("cannot clean up", "path", path, "err", err)
			}
		}
	}
}

// removeForeign removes a scratch directory with the rights of whoever owns it. Its parent is ours, so that looking at it is safe.
func (m *machine) removeForeign(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	cred := files.Credential{UID: owner.Uid, GID: owner.Gid}
	agent, err := m.agents.take(cred)
	if err != nil {
		return err
	}
	defer m.agents.giveBack(cred)
	return m.removeScratch(path, func() (*files.Agent, error) { return agent, nil })
}

// removeScratch empties a scratch directory with its user's rights, and removes it with ours.
func (m *machine) removeScratch(path string, agent func() (*files.Agent, error)) error {
	a, err := agent()
	if err != nil {
		return err
	}
	if err := a.RemoveAll(context.Background(), path, "."); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Remove(path)
}

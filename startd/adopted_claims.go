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
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/startd/slot"
	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// adoptedClaim is a claim that an earlier start has left.
type adoptedClaim struct {
	runner      *claimRunner
	state       starterclient.ProcessState
	starterDead bool // its starter is dead
}

// adoptAll takes over the claims of earlier starts, and removes what is left of others.
// It runs before anything else does.
func (l *machineLoop) adoptAll(claims []slot.ClaimID) {
	all := make([]*adoptedClaim, len(claims))
	var looking sync.WaitGroup
	for i, id := range claims {
		looking.Go(func() { all[i] = l.host.connectStarter(id) })
	}
	looking.Wait()
	keep := make(map[string]bool)
	slices.SortStableFunc(all, func(a, b *adoptedClaim) int {
		return cmp.Compare(a.adoptionPriority(), b.adoptionPriority())
	})
	for _, f := range all {
		if f != nil && l.adopt(f) {
			keep[filepath.Join(l.host.scratchDir(), f.runner.id.String())], keep[filepath.Join(l.host.ioDir(),
				f.runner.id.String())] = true, true
		}
	}
	if l.ownerState == nil { // it had an owner, who was there
		for _, h := range l.runners {
			if h.ownerSuspension.isFrozenOutside() {
				l.suspendClaim(h, "")
			}
		}
	}
	l.host.sweepScratch(keep)
	l.host.sweepCheckpoints(all)
	l.sweepGroups()
}

// sweepGroups removes the groups of claims that are not in the books. Nothing of theirs
// runs any more but what has escaped from its starter.
func (l *machineLoop) sweepGroups() {
	keep := make(map[string]bool)
	for id := range l.runners {
		keep[id.String()] = true
	}
	l.host.groups.sweep(keep)
}

// adoptTries is how often a starter that is there and does not answer is asked again: to
// give it up is to lose its task.
const adoptTries = 4

// connectStarter connects to the starter of a claim. Nil: there is nothing to take over,
// and nothing is left of it.
func (m *claimHost) connectStarter(id slot.ClaimID) *adoptedClaim {
	dir := filepath.Join(m.claimsDir(), id.String())
	file, err := readClaimFile(dir)
	if err != nil || file.BootID != m.boot || slot.ClaimID(file.ID) != id {
		m.log.Info("claim of an earlier boot or a broken one is dropped", "claim", id, "err", err)
		m.removeClaim(dir, file)
		return nil
	}
	f := &adoptedClaim{runner: m.newClaimRunner(file)}
	f.runner.cred, f.runner.group = m.accounts.credential(&file), m.groups.find(id)
	f.runner.findFiles()
	for range adoptTries {
		f.runner.starter, f.state, err = starterclient.Adopt(dir, func(e starterclient.Event) {
			f.runner.queue.Put(starterEvent{e})
		})
		if !errors.Is(err, roost.Unavailable) {
			break
		}
	}
	if err != nil {
		f.starterDead = true
		if f.state.Phase == proto.Idle {
			m.log.Info("idle claim without a starter is dropped", "claim", id, "err", err)
			m.removeClaim(dir, file)
			return nil
		}
	}
	// it was written before the starter was told of the attempt
	if _, err := readAttempt(dir); err != nil && f.state.Phase != proto.Idle {
		m.log.Error("what is known of the attempt on a claim is damaged on disk: it is ended, and runs again", "claim",
			id, "err", err)
		m.removeClaim(dir, file)
		return nil
	}
	f.runner.ownerSuspension.attach(f.runner.group, f.runner.starter, m.sandboxed)
	if f.runner.attemptFile, err = os.OpenFile(filepath.Join(dir, "attempt"), os.O_WRONLY|os.O_CREATE,
		0o600); err != nil {
		m.log.Error("claim cannot be taken over", "claim", id, "err", err)
		m.removeClaim(dir, file)
		return nil
	}
	return f
}

// removeClaim removes a claim that nobody will ask for, and the processes that may be
// left of it.
func (m *claimHost) removeClaim(dir string, file claimFile) {
	if file.Cookie != "" && file.BootID == m.boot {
		if _, err := starterclient.Sweep(file.Cookie, m.boxPath(slot.ClaimID(file.ID))); err != nil {
			m.log.Error("processes are left", "claim", file.ID, "err", err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		m.log.Warn("cannot remove a claim", "dir", dir, "err", err)
	}
}

// adopt enters a claim into the books and starts its hand. An attempt that has ended is
// entered as one that runs: the hand says the rest, in the way that it always does.
func (l *machineLoop) adopt(f *adoptedClaim) bool {
	h := f.runner
	claim := slot.Claim{
		ID: h.id, Grant: slot.GrantID{Epoch: h.file.Epoch, ID: h.file.Grant}, Schedd: h.file.Schedd,
		Owner: h.file.Owner, Info: h.file.About,
		UID: h.file.UID, GID: h.file.GID, Class: h.file.Class, CanQueue: h.file.MayWait, Resources: h.file.Resources,
		State: slot.Idle,
		Lease: boottime.Now() + h.file.Lease, LeasePeriod: h.file.Lease,
	}
	if f.state.Phase != proto.Idle {
		h.attempt = adoptedAttempt(h.file.Schedd, f.state.Attempt, h.dir, h.cred)
		h.sharedAttempt.Store(h.attempt)
		h.measureFrom(h.attempt, h.attempt.record.Origin)
		h.restoreCheckpoints(h.attempt, f.state, f.state.Phase == proto.Running && !f.starterDead)
		claim.State, claim.Attempt, claim.Running = slot.Busy, h.attempt.id, f.state.Phase == proto.Running &&
			!f.starterDead
		claim.RunningSince = slot.BootTime(f.state.Since)
		claim.AttemptInfo = slot.AttemptInfo{Walltime: h.attempt.record.Walltime, Expected: h.attempt.record.Expected,
			NotRestartable: h.attempt.record.Once}
		claim.ProcessesGone = f.state.Phase == proto.Ended
		if claim.Running {
			h.watchGPUs(h.attempt.id)
			h.awaitTerminal(h.attempt)
			h.reopenSpawnSocket(h.attempt)
		}
	}
	l.runners[h.id] = h
	go h.run()
	var err error
	if h.file.Placed != nil {
		claim.Placement, err = l.table.Free().Restore(*h.file.Placed)
	}
	if err == nil || claim.State != slot.Busy || claim.ProcessesGone {
		err = l.table.Adopt(boottime.Now(), claim)
	}
	if err != nil {
		l.host.log.Error("claim cannot be taken over", "claim", h.id, "err", err)
		h.queue.Put(removeClaimCmd{})
		return false
	}
	l.pids[h.id] = f.state.PID
	if l.host.config.Pin && h.file.Cores != nil {
		l.pinned[h.id] = h.file.Cores
	}
	l.host.log.Info("claim taken over", "claim", h.id, "schedd", claim.Schedd, "phase", f.state.Phase, "starter gone",
		f.starterDead)
	if f.starterDead {
		h.queue.Put(starterEvent{starterclient.ProcessDied{LastState: f.state, Err: starterclient.ErrGone}})
	}
	return true
}

// adoptionPriority puts claims on which something runs before those that hold something,
// and these before those that wait: an idle claim may have passed on what it held, and
// its file may not say so yet.
func (f *adoptedClaim) adoptionPriority() int {
	switch {
	case f == nil:
		return 3
	case f.state.Phase == proto.Running:
		return 0
	case f.runner.file.Placed != nil:
		return 1
	}
	return 2
}

// sweepScratch removes what nobody uses.
func (m *claimHost) sweepScratch(keep map[string]bool) {
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
func (m *claimHost) sweepIO(keep map[string]bool) {
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

// removeForeign removes a scratch directory with the rights of whoever owns it. Its
// parent is ours, so that looking at it is safe.
func (m *claimHost) removeForeign(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	cred := userfiles.UserCredential{UID: owner.Uid, GID: owner.Gid}
	agent, err := m.agents.Acquire(cred)
	if err != nil {
		return err
	}
	defer m.agents.Release(cred)
	return m.removeScratch(path, func() (*userfiles.Agent, error) { return agent, nil })
}

// removeScratch empties a scratch directory with its user's rights, and removes it with
// ours.
func (m *claimHost) removeScratch(path string, agent func() (*userfiles.Agent, error)) error {
	a, err := agent()
	if err != nil {
		return err
	}
	if err := a.RemoveAll(context.Background(), path, "."); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Remove(path)
}

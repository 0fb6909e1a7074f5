package claim

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/startd/slot"
	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// Adopted is a claim that an earlier start has left.
type Adopted struct {
	Runner      *Runner
	State       starterclient.ProcessState // what the starter said, or its journal
	StarterDead bool
}

// adoptTries is how often a starter is asked again that is there and does not answer. To
// give it up is to lose its task.
const adoptTries = 4

// Adopt connects to the starter of a claim that an earlier start has left. Nil: there is
// nothing to take over, and nothing is left of it.
func (m *Machine) Adopt(id slot.ClaimID) *Adopted {
	dir := m.claimDir(id)
	file, err := readClaimFile(dir)
	if errors.Is(err, fs.ErrNotExist) {
		releaseSpare(dir)
	}
	if err != nil || file.BootID != m.boot || slot.ClaimID(file.ID) != id {
		m.log.Info("claim of an earlier boot or a broken one is dropped", "claim", id, "err", err)
		m.removeClaim(dir, file)
		return nil
	}
	f := &Adopted{Runner: m.NewRunner(file, nil)}
	f.Runner.group = m.groups.find(file)
	claimResizer{f.Runner}.restoreLimits()
	f.Runner.dirs.find()
	for range adoptTries {
		f.Runner.starter, f.State, err = starterclient.Adopt(dir, func(e starterclient.Event) {
			f.Runner.queue.Put(starterEvent{e})
		})
		if !errors.Is(err, roost.Unavailable) {
			break
		}
	}
	if err != nil {
		f.StarterDead = true
		if f.State.Phase == proto.Idle {
			m.log.Info("idle claim without a starter is dropped", "claim", id, "err", err)
			m.removeClaim(dir, file)
			return nil
		}
	}
	// it was written before the starter was told of the attempt
	if _, err := readAttempt(dir); err != nil && f.State.Phase != proto.Idle {
		m.log.Error("what is known of the attempt on a claim is damaged on disk: it is ended, and runs again", "claim",
			id, "err", err)
		m.removeClaim(dir, file)
		return nil
	}
	f.Runner.ownerSuspension.attach(f.Runner.group, f.Runner.starter, m.sandboxed)
	if f.Runner.attemptFile, err = os.OpenFile(filepath.Join(dir, "attempt"), os.O_WRONLY|os.O_CREATE,
		0o600); err != nil {
		m.log.Error("claim cannot be taken over", "claim", id, "err", err)
		m.removeClaim(dir, file)
		return nil
	}
	return f
}

// removeClaim removes a claim that nobody will ask for, and the processes that may be
// left of it.
func (m *Machine) removeClaim(dir string, file File) {
	if file.Cookie != "" && file.BootID == m.boot {
		if _, err := starterclient.Sweep(file.Cookie, m.dirs.ClaimIO(slot.ClaimID(file.ID))); err != nil {
			m.log.Error("processes are left", "claim", file.ID, "err", err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		m.log.Warn("cannot remove a claim", "dir", dir, "err", err)
	}
}

// Order returns the claim's place among those that are adopted, lowest first. Claims on
// which something runs come before those that hold something, and these before those
// that wait: an idle claim may have passed on what it held, and its file may not say so
// yet.
func (f *Adopted) Order() int {
	switch {
	case f == nil:
		return 3
	case f.State.Phase == proto.Running:
		return 0
	case f.Runner.file.Placed != nil:
		return 1
	}
	return 2
}

// SweepFiles removes the directories of claims of which nobody knows. Those to be left
// are named by the ids of their claims.
func (m *Machine) SweepFiles(wanted map[string]bool) {
	m.sweepIO(wanted)
	entries, err := os.ReadDir(m.dirs.Scratch())
	if err != nil {
		m.log.Warn("cannot look for old scratch directories", "err", err)
		return
	}
	for _, e := range entries {
		path := filepath.Join(m.dirs.Scratch(), e.Name())
		if wanted[e.Name()] {
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
func (m *Machine) sweepIO(wanted map[string]bool) {
	entries, err := os.ReadDir(m.dirs.IO())
	if err != nil {
		m.log.Warn("cannot look for old output", "err", err)
		return
	}
	for _, e := range entries {
		if path := filepath.Join(m.dirs.IO(), e.Name()); !wanted[e.Name()] {
			if err := os.RemoveAll(path); err != nil {
				m.log.Warn("cannot clean up", "path", path, "err", err)
			}
		}
	}
}

// removeForeign removes a scratch directory with the rights of whoever owns it. Its
// parent is ours, so that looking at it is safe.
func (m *Machine) removeForeign(path string) error {
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
	return removeScratch(path, func() (*userfiles.Agent, error) { return agent, nil })
}

// Resume takes up the attempt on the claim, and returns the claim for the table, without
// its placement. An attempt that has ended is one that runs: the runner reports the rest
// as it always does.
func (f *Adopted) Resume() slot.Claim {
	h := f.Runner
	claim := slot.Claim{
		ID: h.id, Grant: roost.GrantID{Epoch: h.file.Epoch, ID: h.file.Grant}, Schedd: h.file.Schedd,
		Owner: h.file.Owner, Info: h.file.About,
		UID: h.file.UID, GID: h.file.GID, Class: h.file.Class, CanQueue: h.file.MayWait, Resources: h.file.Resources,
		Inside: slot.ClaimID(h.file.Inside), MemorySlack: h.file.Slack,
		State: slot.Idle, Ports: h.file.Ports, PortJob: h.file.PortJob,
		Lease: boottime.Now() + h.file.Lease, LeasePeriod: h.file.Lease,
	}
	if f.State.Phase == proto.Idle {
		return claim
	}
	h.attempt = h.machine.adoptedAttempt(h.file.Schedd, f.State.Attempt, h.dir, h.cred)
	h.sharedAttempt.Store(h.attempt)
	h.containerizer().adopt(h.attempt)
	h.measureFrom(h.attempt, h.attempt.record.Origin)
	h.checkpointer().restoreCheckpoints(h.attempt, f.State, f.State.Phase == proto.Running && !f.StarterDead)
	claim.State, claim.Attempt = slot.Busy, h.attempt.id
	claim.Running = f.State.Phase == proto.Running && !f.StarterDead
	claim.RunningSince = roost.BootTime(f.State.Since)
	claim.AttemptInfo = slot.AttemptInfo{Walltime: h.attempt.record.Walltime, Expected: h.attempt.record.Expected,
		NotRestartable: h.attempt.record.Once, Priority: h.attempt.record.Priority}
	claim.ProcessesGone = f.State.Phase == proto.Ended
	if claim.Running {
		h.watchGPUs(h.attempt.id)
		h.awaitTerminal(h.attempt)
		h.reopenSpawnSocket(h.attempt)
		h.attempt.isStill.Store(h.attempt.record.Still)
		h.service().startChecks(h.attempt, int(f.State.PID))
	}
	return claim
}

// Placement returns what the claim held, and the cores that its tasks are bound to. Nil:
// it waited, and they are bound to none. It is called before the runner runs.
func (f *Adopted) Placement() (*gpu.SavedPlacement, []int) {
	return f.Runner.file.Placed, f.Runner.file.Cores
}

// ReportStarterDeath tells the runner that its starter is dead, as the starter's end does
// when the runner sees it.
func (f *Adopted) ReportStarterDeath() {
	f.Runner.queue.Put(starterEvent{starterclient.ProcessDied{LastState: f.State, Err: starterclient.ErrGone}})
}

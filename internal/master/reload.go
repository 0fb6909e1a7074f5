package master

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// ErrReplaced ends Run when the caller has to execute the program of the master anew. It
// is started with the same arguments, in the same process. The daemons are gone then, and
// running tasks are not.
var ErrReplaced = errors.New("the program of the master is to be started anew")

// reloadSignal makes any master reload. SIGHUP does so, too, but ends a pool that has a
// terminal.
const reloadSignal = unix.SIGUSR1

// reloadStopTimeout is how long a daemon may take to stop for a reload. It loses nothing
// when it is killed.
const reloadStopTimeout = 10 * time.Second

// ReloadState is what a master did when it was last asked to reload.
type ReloadState struct {
	Count     int       `json:"count"` // of reloads since the master was started
	At        time.Time `json:"at"`
	Error     string    `json:"error,omitempty"`  // why nothing was done
	Replaced  bool      `json:"replaced"`         // all daemons and the master were started anew
	Reason    string    `json:"reason,omitempty"` // of that
	Restarted []string  `json:"restarted,omitempty"`
	Started   []string  `json:"started,omitempty"`
	Stopped   []string  `json:"stopped,omitempty"`
}

// reload reads the node file again, and restarts the daemons whose settings have changed.
// A file with a mistake changes nothing.
//
// A startd is killed: told to stop it would vacate its tasks, but killed it leaves them
// to the next one. The others stop in order.
func (m *nodeMaster) reload(now time.Time) {
	if m.stage >= 0 || m.replacing {
		return
	}
	m.reloads = ReloadState{Count: m.reloads.Count + 1, At: now.UTC()}
	next, err := config.Load(m.node.File)
	if err == nil && (next.Dir != m.node.Dir || next.Name != m.node.Name) {
		err = errors.New("the name or the directory of the node has changed, which needs a restart of the master")
	}
	if err == nil {
		err = makeDirs(next, 0o711, 0o750)
	}
	if err != nil {
		m.reloads.Error = err.Error()
		m.log.Error("reload: nothing is changed", "err", err)
		return
	}
	switch {
	case !slices.Equal(programFiles(m.opt.Program), m.programs):
		m.replace("the programs have changed")
	case !reflect.DeepEqual(sharedSettings(next), sharedSettings(m.node)):
		m.replace("settings of all daemons have changed")
	default:
		m.reloadDaemons(next)
	}
}

// replace stops all daemons, so that the program of the master can be started anew.
//
// Users notice that only the schedd is away, so it stops when all others are gone, and
// startReplaced starts it first. Stopping all at once is simpler, but then no job is
// accepted until the slowest daemon has stopped and two others serve again.
func (m *nodeMaster) replace(why string) {
	m.log.Info("reload: all daemons are started anew", "why", why)
	m.reloads.Replaced, m.reloads.Reason, m.replacing = true, why, true
	for _, c := range m.children {
		if c.role != peer.Schedd {
			m.stopForReload(c)
		}
	}
}

// stopReplacedSchedd stops the schedd when the other daemons are gone after replace.
func (m *nodeMaster) stopReplacedSchedd() {
	if !m.replacing || m.stage >= 0 {
		return
	}
	for _, c := range m.children {
		if c.role != peer.Schedd && c.phase != exited {
			return
		}
	}
	for _, c := range m.children {
		if c.role == peer.Schedd && c.phase != stopping && c.phase != exited {
			m.stopForReload(c)
		}
	}
}

// startReplaced orders the daemons of a master that has replaced another. The schedd
// comes first, and waits for no other daemon: what it accepts is matched once they serve.
func (m *nodeMaster) startReplaced() {
	slices.SortStableFunc(m.children, func(a, b *childProcess) int {
		return cmp.Compare(startRank(a.role), startRank(b.role))
	})
	for _, c := range m.children {
		if c.role == peer.Schedd {
			c.needs = nil
		}
	}
}

func startRank(r peer.Role) int {
	if r == peer.Schedd {
		return 0
	}
	return 1
}

// isReplaceable reports whether the last daemon is gone after replace.
func (m *nodeMaster) isReplaceable() bool {
	return m.replacing && m.stage < 0 &&
		!slices.ContainsFunc(m.children, func(c *childProcess) bool { return c.phase != exited })
}

// reloadDaemons restarts, starts and stops single daemons.
func (m *nodeMaster) reloadDaemons(next *config.Node) {
	previous := m.node
	m.node = next
	wanted := childrenOf(next)
	find := func(all []*childProcess, title string) *childProcess {
		i := slices.IndexFunc(all, func(c *childProcess) bool { return c.title() == title })
		if i < 0 {
			return nil
		}
		return all[i]
	}
	r := &m.reloads
	for _, c := range slices.Clone(m.children) {
		switch {
		case find(wanted, c.title()) == nil:
			r.Stopped = append(r.Stopped, c.title())
			c.removed = true
			m.stopForReload(c)
		case !reflect.DeepEqual(settingsOf(previous, c), settingsOf(next, c)):
			r.Restarted = append(r.Restarted, c.title())
			m.stopForReload(c)
		}
	}
	for _, c := range wanted {
		if old := find(m.children, c.title()); old != nil {
			old.removed = false
			continue
		}
		log, err := openLog(c.logPath(next), int64(maxLog))
		if err != nil {
			m.log.Error("reload: no log for a new daemon, which is not started", "what", c.title(), "err", err)
			continue
		}
		c.log = log
		r.Started = append(r.Started, c.title())
		m.children = append(m.children, c)
	}
	m.log.Info("reload", "restarted", r.Restarted, "started", r.Started, "stopped", r.Stopped)
}

// stopForReload stops a daemon that is started again, or removed.
func (m *nodeMaster) stopForReload(c *childProcess) {
	if c.pid == 0 {
		if m.replacing {
			c.phase = exited
		} else if c.removed {
			m.removeChild(c)
		}
		return
	}
	c.phase, c.stopBy = stopping, time.Now().Add(min(reloadStopTimeout, m.opt.StopTimeout))
	switch {
	case c.role == peer.Startd && !c.removed:
		c.kill(unix.SIGKILL)
	case c.role == peer.Startd:
		c.stopBy = time.Now().Add(m.opt.StopTimeout) // it vacates its tasks
		c.kill(unix.SIGTERM)
	default:
		c.kill(unix.SIGTERM)
	}
}

// onStoppedForReload follows the death of a daemon that a reload has stopped. It reports
// false for another.
func (m *nodeMaster) onStoppedForReload(c *childProcess) bool {
	switch {
	case m.stage >= 0:
		return false
	case m.replacing:
		c.phase = exited
	case c.phase != stopping:
		return false
	case c.removed:
		m.removeChild(c)
	default:
		c.phase, c.restartAt = backingOff, time.Now()
		m.log.Info("stopped for a reload", "what", c.title())
	}
	return true
}

func (m *nodeMaster) removeChild(c *childProcess) {
	m.log.Info("removed by a reload", "what", c.title())
	c.log.Close()
	m.children = slices.DeleteFunc(m.children, func(d *childProcess) bool { return d == c })
}

// killLate kills the daemons that do not stop for a reload.
func (m *nodeMaster) killLate(now time.Time) {
	if m.stage >= 0 {
		return
	}
	for _, c := range m.children {
		if c.phase == stopping && c.pid != 0 && !now.Before(c.stopBy) {
			m.log.Warn("does not stop: killed", "what", c.title())
			c.kill(unix.SIGKILL)
			c.stopBy = now.Add(time.Second) // the kernel may need a moment
		}
	}
}

// sharedSettings are the settings of a node that each daemon may read.
func sharedSettings(n *config.Node) config.Node {
	s := *n
	s.Collector, s.Negotiator, s.CellQueue, s.Schedd, s.Startds = nil, nil, nil, nil, nil
	s.Images, s.Accountant, s.Authority, s.Web = nil, nil, nil, nil
	s.Owner, s.Warnings = config.OwnerFile{}, nil
	return s
}

// settingsOf are the other settings that one daemon reads.
func settingsOf(n *config.Node, c *childProcess) []any {
	var names []string
	var own *config.StartdSettings
	for i := range n.Startds {
		names = append(names, n.Startds[i].Name)
		if n.Startds[i].Name == c.name {
			own = &n.Startds[i]
		}
	}
	switch c.role {
	case guardRole:
		return []any{n.Owner, n.Startds}
	case peer.Authority:
		return []any{n.Authority}
	case peer.Collector:
		return []any{n.Collector}
	case peer.CheckpointServer:
		return []any{n.Images}
	case peer.Negotiator:
		return []any{n.Negotiator}
	case peer.CellQueue:
		return []any{n.CellQueue, n.Negotiator}
	case peer.Startd:
		return []any{own, names, n.NeedsGuard(), n.Owner}
	case peer.Schedd:
		return []any{n.Schedd, len(names) > 0}
	case webRole:
		return []any{n.Web, n.Schedd}
	}
	return []any{n.Accountant, n.Schedd}
}

// programFile identifies the contents of a program of a daemon.
type programFile struct {
	name           string
	device, inode  uint64
	size           int64
	seconds, nanos int64 // of the last change
}

// programFiles identifies the programs of the daemons, which lie beside that of the
// master. What is not there is left out.
func programFiles(program string) (all []programFile) {
	names := []string{filepath.Base(program), "roost-negotiator", "roost-web", "roost-accountant", "roost-starter"}
	for _, name := range names {
		var st unix.Stat_t
		if unix.Stat(filepath.Join(filepath.Dir(program), name), &st) != nil {
			continue
		}
		all = append(all, programFile{name, st.Dev, st.Ino, st.Size, st.Mtim.Sec, st.Mtim.Nsec})
	}
	return all
}

// RequestReload asks the master of the node in dir to reload. The master is that of the
// lock's file, and must have the lock.
func RequestReload(dir string) error {
	state, running, err := ReadState(dir)
	if err != nil {
		return err
	}
	if !running {
		return fmt.Errorf("reload: %w: no master runs in %s", roost.Unavailable, dir)
	}
	if !state.CanReload {
		return fmt.Errorf("reload: %w: the master in %s is of an older version, which cannot; restart it",
			roost.Conflict, dir)
	}
	process, err := unix.PidfdOpen(state.PID, 0)
	if err != nil {
		return fmt.Errorf("reload: master %d: %w", state.PID, err)
	}
	defer unix.Close(process)
	// The process of the number is the master, if the master runs still.
	if again, running, err := ReadState(dir); err != nil || !running || again.PID != state.PID {
		return fmt.Errorf("reload: %w: the master in %s has just ended", roost.Unavailable, dir)
	}
	if err := unix.PidfdSendSignal(process, reloadSignal, nil, 0); errors.Is(err, unix.EPERM) {
		return fmt.Errorf("reload: %w: the master in %s belongs to another account; say it as that account, or as root",
			roost.PermissionDenied, dir)
	} else if err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	return nil
}

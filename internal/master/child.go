package master

import (
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
)

// childPhase is the phase of a daemon's life; doc.go draws the state machine.
type childPhase uint8

const (
	waiting childPhase = iota
	starting
	serving
	backingOff
	stopping
	exited
)

// childProcess is one daemon of the node.
type childProcess struct {
	role  peer.Role
	name  string      // of a startd
	needs []peer.Role // what must serve before it is started for the first time
	log   *logFile

	phase        childPhase
	pid          int       // 0: no process
	started      time.Time // start of the process
	servingSince time.Time // since when it serves; zero if it does not
	restartAt    time.Time // in phase Resting: when to start it again
	backoff      restartBackoff
	servedOnce   bool // it has served at least once
	restarts     int
	stopBy       time.Time // in phase Stopping of a reload: when to kill it
	removed      bool      // the node file names it no more
	lastExit     string
	drained      chan struct{} // closed when all output of the process is in the log
}

// guardRole is the guard of a host. It serves its startds on a unix socket, so no
// certificate has this role.
const guardRole peer.Role = "guard"

// webRole is the web daemon of a node. It has only the logins of its users, so no
// certificate has this role.
const webRole peer.Role = "web"

// title returns the name of a daemon, for messages and its log.
func (c *childProcess) title() string {
	if c.role == peer.Startd {
		return "startd " + c.name
	}
	return string(c.role)
}

// stopOrder returns the order in which daemons are stopped. The web daemon and the
// accountant, on which nothing depends, come first. Daemons with running work follow,
// then the collector, to which the others report, and last the guard, which enforces the
// machine owner's will.
func stopOrder() []peer.Role {
	return []peer.Role{webRole, peer.Accountant, peer.Startd, peer.Schedd, peer.CellQueue, peer.Negotiator,
		peer.Collector, peer.CheckpointServer, peer.Authority, guardRole}
}

// childrenOf lists the node's daemons, in the order of their start. All of them could be
// started at once, because each waits for the others. But a daemon whose connection is
// refused pauses before it tries again, so the pool is ready sooner if the servers start
// first.
func childrenOf(n *config.Node) []*childProcess {
	var all []*childProcess
	add := func(role peer.Role, name string, needs ...peer.Role) {
		all = append(all, &childProcess{role: role, name: name, needs: needs})
	}
	if n.NeedsGuard() {
		add(guardRole, "")
	}
	if n.Authority != nil {
		add(peer.Authority, "")
	}
	if n.Collector != nil {
		add(peer.Collector, "")
	}
	if n.Images != nil {
		add(peer.CheckpointServer, "")
	}
	if n.Negotiator != nil {
		add(peer.Negotiator, "", peer.Collector)
	}
	for i := range n.Startds {
		add(peer.Startd, n.Startds[i].Name, peer.Collector, guardRole)
	}
	if n.Schedd != nil {
		add(peer.Schedd, "", peer.Collector, peer.Negotiator)
	}
	if n.CellQueue != nil {
		add(peer.CellQueue, "", peer.Collector, peer.Negotiator)
	}
	if n.Web != nil && !n.Web.OwnUnit {
		add(webRole, "", peer.Schedd)
	}
	if n.Accountant != nil {
		add(peer.Accountant, "", peer.Collector, peer.Schedd)
	}
	return all
}

// DaemonNames returns the daemons that the master starts for a node. Each is a role, and
// a startd also has its name.
func DaemonNames(n *config.Node) (all []string) {
	for _, c := range childrenOf(n) {
		all = append(all, c.title())
	}
	return all
}

func (c *childProcess) logPath(n *config.Node) string {
	name := string(c.role)
	if c.role == peer.Startd && len(n.Startds) > 1 {
		name += "-" + c.name
	}
	return filepath.Join(n.LogDir(), name+".log")
}

func (c *childProcess) argv(program string, n *config.Node) []string {
	argv := []string{program, string(c.role), "--config", n.File}
	if c.role == peer.Startd {
		argv = append(argv, "--name", c.name)
	}
	return argv
}

func (c *childProcess) kill(sig unix.Signal) {
	if c.pid != 0 {
		unix.Kill(c.pid, sig)
	}
}

// drain copies the output of the process into its log. It returns when all writers have
// closed the pipe, or its reading end is closed.
func (c *childProcess) drain(output *os.File) {
	done := make(chan struct{})
	c.drained = done
	go func() {
		defer close(done)
		defer output.Close()
		io.Copy(c.log, output)
	}()
}

func (c *childProcess) process() DaemonState {
	p := DaemonState{Role: string(c.role), Name: c.name, PID: c.pid, Ready: c.phase == serving && c.pid != 0,
		Restarts: c.restarts, LastExit: c.lastExit, Log: c.log.path}
	if c.pid != 0 {
		p.Started = c.started.UTC()
	}
	return p
}

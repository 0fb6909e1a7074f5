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

// childPhase is where a daemon is in its life; doc.go draws it.
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
	started      time.Time // of the process
	servingSince time.Time // since when it serves; zero if it does not
	restartAt    time.Time // resting: when to start it again
	backoff      restartBackoff
	servedOnce   bool // it has served once
	restarts     int
	lastExit     string
	drained      chan struct{} // closed when everything the process printed is in the log
}

// guardRole is the guard of a host. It meets its startds on a unix socket, so that no
// certificate has such a role.
const guardRole peer.Role = "guard"

// title names a daemon for people and its log.
func (c *childProcess) title() string {
	if c.role == peer.Startd {
		return "startd " + c.name
	}
	return string(c.role)
}

// stopOrder is the order in which daemons are stopped: first those that hold work, then
// the one that the others report to, last the one that sees to it that nothing runs which
// the machine's owner does not want.
func stopOrder() []peer.Role {
	return []peer.Role{peer.Startd, peer.Schedd, peer.Negotiator, peer.Collector, peer.CheckpointServer, peer.Authority,
		guardRole}
}

// childrenOf lists the node's daemons. All of them could be started at once, because each
// waits for the others; but one that is refused pauses before it tries again, so the
// whole is ready sooner when what the others connect to comes first.
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

// drain copies what the process prints into its log until nobody can print any more, or
// the reading end is closed.
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

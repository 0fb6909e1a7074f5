package master

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/config"
)

// stop begins to stop the node. Daemons without a process are gone at once.
func (m *nodeMaster) stop() {
	if m.stage >= 0 {
		return
	}
	m.log.Info("stopping")
	m.stage = 0
	for _, c := range m.children {
		if c.phase == waiting || c.phase == backingOff {
			c.phase = exited
		}
	}
	m.signalStage()
}

// signalStage sends SIGTERM to the daemons of this stage.
func (m *nodeMaster) signalStage() {
	if m.stage >= len(stopOrder()) {
		return
	}
	m.killAt = time.Now().Add(m.opt.StopTimeout)
	for _, c := range m.children {
		if c.role == stopOrder()[m.stage] && c.phase != exited {
			c.phase = stopping
			c.kill(unix.SIGTERM)
		}
	}
}

// advanceStage goes to the next stage when the daemons of one are gone, and kills those
// that do not end.
func (m *nodeMaster) advanceStage() {
	for m.stage >= 0 && m.stage < len(stopOrder()) {
		left := 0
		for _, c := range m.children {
			if c.role != stopOrder()[m.stage] || c.phase == exited {
				continue
			}
			left++
			if !time.Now().Before(m.killAt) && c.pid != 0 {
				m.log.Warn("does not stop: killed", "what", c.title())
				c.kill(unix.SIGKILL)
			}
		}
		if left > 0 {
			if !time.Now().Before(m.killAt) {
				m.killAt = time.Now().Add(time.Second) // the kernel may need a moment
			}
			return
		}
		m.stage++
		m.signalStage()
	}
}

// cleanUp removes temporary files.
func (m *nodeMaster) cleanUp() {
	if m.opt.Sweep {
		if n := killDescendants(sweepTimeout); n > 0 {
			m.log.Info("killed what was left of the tasks", "processes", n)
		}
	}
	for _, addr := range socketPaths(m.node) {
		os.Remove(addr)
	}
	os.Remove(statePath(m.node.Dir))
	m.log.Info("stopped")
}

// socketPaths lists the paths of the unix sockets on which the node's daemons listen.
func socketPaths(n *config.Node) []string {
	var all, paths []string
	if n.Collector != nil {
		all = append(all, n.Collector.Listen...)
	}
	if n.Negotiator != nil {
		all = append(all, n.Negotiator.Listen...)
	}
	if n.Schedd != nil {
		all = append(all, n.Schedd.Socket)
	}
	if n.Images != nil {
		all = append(all, n.Images.Listen...)
	}
	if n.Authority != nil {
		all = append(all, "unix:"+n.AuthoritySocket())
	}
	for _, d := range n.Startds {
		all = append(all, d.Listen...)
	}
	for _, addr := range all {
		if path, ok := strings.CutPrefix(addr, "unix:"); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

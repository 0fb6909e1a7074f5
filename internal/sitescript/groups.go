package sitescript

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/roost-batch/roost/internal/cgroup"
)

// Groups contains the scripts of one daemon. Each run has a control group of its own, and
// all processes in it are killed when the script has taken too long, or has ended.
//
// Naively the process group or the session would be killed. But a child that calls
// setsid, or that a shell starts under "set -m", is in another one. No process leaves its
// control group unless root moves it.
//
// Where this process may make no control groups, as without root's rights and without a
// delegated part of the tree, each run is marked by a variable in its environment. The
// processes with that variable, and those in the session of the script, are killed one by
// one until none is left. Not covered is a process that has both another session and an
// environment without the variable, or that the daemon may not inspect; and what a script
// that lingers was doing when its daemon was killed.
type Groups struct {
	owner  string              // names the daemon in the mark of a run
	parent *cgroup.ParentGroup // nil: there are no control groups
	runs   atomic.Uint64
}

// leftGroup is the group of what lingering scripts have left.
const leftGroup = "left"

// OpenGroups prepares to contain the scripts of the daemon that has a directory. It ends
// what unfinished scripts of an earlier start have left. Groups are below /roost-scripts.
// No two daemons may have one directory. An error says that something was left and could
// not be ended.
func OpenGroups(dir string) (*Groups, error) {
	sum := sha256.Sum256([]byte(dir))
	g := &Groups{owner: hex.EncodeToString(sum[:8])}
	parent, err := cgroup.OpenUnlimited("/roost-scripts/" + g.owner)
	if err != nil {
		return g, err
	}
	if parent.Enforcement().Kill {
		g.parent = parent
		err = parent.Sweep(map[string]bool{leftGroup: true})
	}
	return g, errors.Join(err, killAllMarked(0, g.mark()))
}

// mark is what the marks of all scripts begin with that do not linger.
func (g *Groups) mark() string { return markVariable + "=" + g.owner + "." }

// Close removes the directory of the groups, if nothing of a script is left.
func (g *Groups) Close() {
	if g == nil || g.parent == nil {
		return
	}
	if left, ok := g.parent.FindGroup(leftGroup); ok {
		cgroup.DeleteEmpty(left)
	}
	g.parent.Close()
}

// container contains the processes of one run.
type container struct {
	mark  string             // NAME=value, in the environment of each process
	group *cgroup.ClaimGroup // nil: none
	dir   *os.File           // of the group, if a process can be cloned into it
	left  *cgroup.ClaimGroup // where what is left goes on
	// what is left as the script ends in time goes on
	lingers bool
}

// open makes a container. Without control groups it has a mark alone. A group that cannot
// be made is an error where groups can be: a script that could not be ended is not begun.
func (g *Groups) open(lingers bool) (*container, error) {
	c := &container{mark: markVariable + "=" + rand.Text(), lingers: lingers}
	if g == nil {
		return c, nil
	}
	if !lingers {
		c.mark = g.mark() + rand.Text()
	}
	if g.parent == nil {
		return c, nil
	}
	group, err := g.parent.MakeGroup(fmt.Sprintf("run-%d", g.runs.Add(1)), cgroup.GroupLimits{})
	if err != nil {
		return nil, err
	}
	c.group = group
	if !group.IsVersion1() {
		c.dir, err = os.Open(group.TaskDir())
	}
	if err == nil && lingers {
		c.left, err = g.parent.MakeGroup(leftGroup, cgroup.GroupLimits{})
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// prepare has the script start inside the group.
func (c *container) prepare(attr *syscall.SysProcAttr) {
	if c.dir != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(c.dir.Fd())
	}
}

// add moves the script, which has just started, into a group into which it could not be
// cloned. Until then it may have forked; the mark finds these children.
func (c *container) add(pid int) {
	if c.group != nil && c.dir == nil {
		c.group.AddTask(pid)
	}
}

// kill kills all processes of the run. The pid is that of the script, which was not
// reaped yet, so that neither the pid nor the session is another's.
func (c *container) kill(pid int) (err error) {
	if c.group != nil {
		err = c.group.Kill()
	}
	if !c.holdsAll() {
		err = errors.Join(err, killScript(pid, c.mark))
	}
	return err
}

// finish ends a run whose script has ended, or was killed. It has the condition of kill.
func (c *container) finish(pid int, killed bool) {
	if c.lingers && !killed {
		if c.group != nil {
			cgroup.MoveTask(c.group, c.left)
		}
		return
	}
	if c.group != nil {
		c.group.Delete()
	}
	if !c.holdsAll() {
		killAllMarked(pid, c.mark)
	}
}

// holdsAll reports whether no process of the run can be outside its group.
func (c *container) holdsAll() bool { return c.dir != nil }

// close ends what is still in the group, and removes it.
func (c *container) close() {
	if c.dir != nil {
		c.dir.Close()
	}
	if c.group != nil {
		c.group.Delete()
	}
}

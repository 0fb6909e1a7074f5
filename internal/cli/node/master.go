package node

import (
	"net"
	"strconv"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/nodeaccess"
	"github.com/roost-batch/roost/internal/master"
)

// UpCommand returns roost up: run a whole pool on this machine.
func UpCommand() *frame.Command {
	return &frame.Command{
		Name: "up", Group: frame.GroupPool, Summary: "run a whole pool on this machine", MaxOperands: 0, Run: startPool,
		Description: "Starts a pool on this machine, for you alone and without any configuration, and keeps it " +
			"running until Ctrl-C. All of it lies in one directory: --dir, else $ROOST_DIR, else roost in your state " +
			"directory (~/.local/state). Jobs that still wait go on when the pool is started again.",
		Examples: []frame.Example{
			{Line: "roost up", Description: "a pool with one node that has all of this machine"},
			{Line: "roost up --nodes 4 --cpus 8 --dir /tmp/pool",
				Description: "four nodes of two cores each, to try things"},
		},
		Flags: []ucli.Flag{
			&ucli.IntFlag{Name: "nodes", Usage: "run `N` execute nodes", Value: 1},
			&ucli.StringFlag{Name: "cpus", Usage: "hand out `N` cores over all nodes, instead of all that there are"},
			&ucli.StringFlag{Name: "memory", Usage: "hand out this `SIZE` of memory over all nodes, as in 8GiB"},
			&ucli.BoolFlag{Name: "desktop", Usage: "run tasks only while nobody uses the machine"},
			&ucli.BoolFlag{Name: "no-web", Usage: "start no web daemon: the pool has no pages"},
			&ucli.StringFlag{Name: "dns", Usage: "serve the names of services over DNS at `ADDRESS`"},
			&ucli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print nothing when the pool is ready"},
		},
	}
}

func startPool(c *frame.Invocation) error {
	opt := master.UpOptions{Dir: c.StringFlag("dir"), Nodes: c.CountFlag("nodes"), Desktop: c.Flag("desktop"),
		NoWeb: c.Flag("no-web"), DNS: c.StringFlag("dns"), Stdout: c.Stdout}
	if c.Flag("quiet") {
		opt.Stdout = nil
	}
	if c.IsFlagSet("nodes") && opt.Nodes < 1 {
		return frame.UsageErrorf("--nodes: a pool has at least one node")
	}
	if host, port, err := net.SplitHostPort(opt.DNS); opt.DNS != "" && (err != nil || host == "" || !isPort(port)) {
		return frame.UsageErrorf("--dns: %q is no address; write it as 127.0.0.1:5353", opt.DNS)
	}
	var err error
	if text := c.StringFlag("cpus"); text != "" {
		if opt.CPUs, err = admin.ParseCores(text); err != nil {
			return err
		}
	}
	if text := c.StringFlag("memory"); text != "" {
		if opt.Memory, err = roost.ParseBytes(text); err != nil {
			return frame.UsageErrorf("--memory: %v", err)
		}
	}
	return c.ExecDaemon(append([]string{"up"}, opt.Args()...)...)
}

// isPort reports whether a text is the number of a port.
func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// MasterCommand returns roost master: run the daemons that a node file names.
func MasterCommand() *frame.Command {
	return &frame.Command{
		Name: "master", Group: frame.GroupPool, Summary: "run the daemons that a node file names", MaxOperands: 0,
		Run: runMaster,
		Description: "Starts the daemons that a node file names, watches them, and starts again what dies. This " +
			"is what runs on each host of a pool of several; roost-node(5) describes the file.",
		Examples: []frame.Example{
			{Line: "roost master --config /etc/roost/node.hcl", Description: "run this host's part of the pool"},
			{Line: "systemctl enable --now roost", Description: "the same, at each boot"},
		},
		Flags: []ucli.Flag{nodeaccess.ConfigFlag()},
	}
}

func runMaster(c *frame.Invocation) error {
	return c.ExecDaemon("master", "--config", c.StringFlag("config"))
}

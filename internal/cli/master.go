package cli

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/master"
)

func upCommand() *command {
	return &command{
		name: "up", group: groupPool, summary: "run a whole pool on this machine", maxOperands: 0, run: startPool,
		description: "Starts a pool on this machine, for you alone and without any configuration, and keeps it " +
			"running until Ctrl-C. All of it lies in one directory: --dir, else $ROOST_DIR, else roost in your state " +
			"directory (~/.local/state). Jobs that still wait go on when the pool is started again.",
		examples: []commandExample{
			{"roost up", "a pool with one node that has all of this machine"},
			{"roost up --nodes 4 --cpus 8 --dir /tmp/pool", "four nodes of two cores each, to try things"},
		},
		flags: []ucli.Flag{
			&ucli.IntFlag{Name: "nodes", Usage: "run `N` execute nodes", Value: 1},
			&ucli.StringFlag{Name: "cpus", Usage: "hand out `N` cores over all nodes, instead of all that there are"},
			&ucli.StringFlag{Name: "memory", Usage: "hand out this `SIZE` of memory over all nodes, as in 8GiB"},
			&ucli.BoolFlag{Name: "desktop", Usage: "run tasks only while nobody uses the machine"},
			&ucli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print nothing when the pool is ready"},
		},
	}
}

func startPool(c *invocation) error {
	opt := master.UpOptions{Dir: c.stringFlag("dir"), Nodes: c.countFlag("nodes"), Desktop: c.flag("desktop"),
		Stdout: c.stdout}
	if c.flag("quiet") {
		opt.Stdout = nil
	}
	if c.isFlagSet("nodes") && opt.Nodes < 1 {
		return usageErrorf("--nodes: a pool has at least one node")
	}
	var err error
	if text := c.stringFlag("cpus"); text != "" {
		if opt.CPUs, err = parseCores(text); err != nil {
			return err
		}
	}
	if text := c.stringFlag("memory"); text != "" {
		if opt.Memory, err = roost.ParseBytes(text); err != nil {
			return usageErrorf("--memory: %v", err)
		}
	}
	ctx, cancel := daemon.SignalContext()
	defer cancel()
	return master.Up(ctx, opt)
}

func masterCommand() *command {
	return &command{
		name: "master", group: groupPool, summary: "run the daemons that a node file names", maxOperands: 0,
		run: runMaster,
		description: "Starts the daemons that a node file names, watches them, and starts again what dies. This " +
			"is what runs on each host of a pool of several; roost-node(5) describes the file.",
		examples: []commandExample{
			{"roost master --config /etc/roost/node.hcl", "run this host's part of the pool"},
			{"systemctl enable --now roost", "the same, at each boot"},
		},
		flags: []ucli.Flag{configFlag()},
	}
}

func runMaster(c *invocation) error {
	ctx, cancel := daemon.SignalContext()
	defer cancel()
	n, err := config.Load(c.stringFlag("config"))
	if err != nil {
		return err
	}
	daemon.Logger("master") // for what the packages below have to say
	printWarnings(n)
	return master.Run(ctx, n, master.RunOptions{Ready: daemon.ReportReady})
}

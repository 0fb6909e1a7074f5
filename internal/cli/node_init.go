package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/enroll"
)

// nodeInstallFlags are the flags of commands that change what a machine is.
func nodeInstallFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "root", Usage: "put everything below `DIR` instead of /, to try it out", Value: "/"},
		&ucli.BoolFlag{Name: "no-start", Usage: "start nothing; say what would"},
	}
}

func (c *invocation) nodeDirectory() enroll.NodePaths {
	return enroll.NodePaths{Root: c.stringFlag("root")}
}

func initCommand() *command {
	return &command{
		name: "init", group: groupPool, summary: "begin a pool on this machine", maxOperands: 0,
		description: "Makes this machine the first of a pool: its authority, which lets other machines in, and " +
			"its central manager, which knows what there is and decides who gets what. " +
			"People can submit here, too. Prints the line that makes another machine a member. With systemd the pool " +
			"starts now and whenever the machine does.",
		examples: []commandExample{
			{"sudo roost init --name physics", "begin the pool physics"},
			{"sudo roost init --server --address 10.0.0.1",
				"jobs run here, too, and others reach this machine by that address"},
		},
		flags: append([]ucli.Flag{
			&ucli.StringFlag{Name: "name", Usage: "the `POOL`'s name; this machine's unless given"},
			&ucli.StringFlag{Name: "address", Usage: "where other machines reach this one, as `HOST[:PORT]`; " +
				"the port is the first of six, 9700 unless given"},
			&ucli.BoolFlag{Name: "server", Usage: "run jobs on this machine as well"},
		}, nodeInstallFlags()...),
		run: initPool,
	}
}

func initPool(c *invocation) error {
	n, token, err := enroll.Init(enroll.InitOptions{NodePaths: c.nodeDirectory(), Pool: c.stringFlag("name"),
		Address: c.stringFlag("address"), Server: c.flag("server")})
	if err != nil {
		return err
	}
	fmt.Fprintf(c.stderr, "The pool %s begins on this machine, %s. Its node file is %s; its authority's key is in "+
		"%s, of which you should keep a copy.\n",
		n.Pool, n.Name, n.File, n.Authority.Dir)
	if err := c.startNode(n.File, false); err != nil {
		return err
	}
	more := "roost token"
	if !c.nodeDirectory().IsSystem() {
		more += " --config " + n.File
	}
	fmt.Fprintf(c.stderr, "To make another machine a server of the pool, run this on it, as root, within an hour. "+
		"It is good for one machine; %s prints more.\n\n", more)
	fmt.Fprintf(c.stdout, "roost join %s %s --server\n", n.AuthorityAt, token)
	return nil
}

// startNode starts the node of that file, or says how that is done.
func (c *invocation) startNode(file string, desktop bool) error {
	p := c.nodeDirectory()
	if !p.Systemd() || c.flag("no-start") {
		command := "roost master --config " + file
		if p.IsSystem() && p.Systemd() {
			command = "systemctl enable --now " + strings.Join(enroll.NodeUnits(desktop), " ")
		}
		fmt.Fprintf(c.stderr, "Start it with:\n\n    %s\n\n", command)
		return nil
	}
	if !enroll.UnitsInstalled() {
		if _, err := c.installNode(enroll.NodePaths{}, ""); err != nil {
			return err
		}
	}
	if err := enroll.StartUnits(c.ctx, enroll.NodeUnits(desktop)...); err != nil {
		return fmt.Errorf("%w (the node file and the keys are in place: roost master --config %s starts it by hand)",
			err, file)
	}
	return nil
}

func installCommand() *command {
	return &command{
		name: "install", group: groupPool, summary: "put programs, manual, completions and units on this machine",
		maxOperands: 0,
		description: "Copies this program and roost-starter, the names of the PBS commands, the manual, the " +
			"completions and the units of systemd to where they are found. What is there and the same is left alone. " +
			"It makes the machine no member of a pool: roost init and roost join do that, and install what is " +
			"missing on their own.",
		examples: []commandExample{
			{"sudo roost install", "install below /usr/local"},
			{"roost install --prefix ~/.local", "install for yourself"},
		},
		flags: []ucli.Flag{
			&ucli.StringFlag{Name: "prefix", Usage: "install below `DIR`", Value: "/usr/local"},
			&ucli.StringFlag{Name: "root", Usage: "put everything below `DIR` instead of /, as for a package",
				Value: "/"},
		},
		run: func(c *invocation) error {
			n, err := c.installNode(c.nodeDirectory(), c.stringFlag("prefix"))
			if err == nil {
				fmt.Fprintf(c.stderr, "%s changed below %s.\n", plural(n, "file"), c.stringFlag("prefix"))
			}
			return err
		},
	}
}

func (c *invocation) installNode(p enroll.NodePaths, prefix string) (changed int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("own program: %w: %w", roost.NoInput, err)
	}
	var links []string
	for _, cmd := range c.all() {
		if cmd.group == groupPBS {
			links = append(links, cmd.name)
		}
	}
	slices.Sort(links)
	return enroll.Install(enroll.InstallOptions{NodePaths: p, Prefix: prefix, Program: self, LinkNames: links,
		Completions: completionScripts()})
}

func leaveCommand() *command {
	return &command{
		name: "leave", group: groupPool, summary: "take this machine out of its pool", maxOperands: 0,
		description: "Stops the node, has its certificate revoked, and takes its key and its node file away. Jobs in " +
			"its queue stay in its directory. The machine with the pool's authority cannot leave.",
		examples: []commandExample{
			{"sudo roost leave", "this machine is no member any more"},
			{"roost leave --root /tmp/try", "end what was tried out there"},
		},
		flags: nodeInstallFlags(),
		run: func(c *invocation) error {
			p := c.nodeDirectory()
			stops := p.Systemd() && !c.flag("no-start") && enroll.UnitsInstalled()
			if stops {
				if err := enroll.StopUnits(c.ctx, enroll.NodeUnits(true)...); err != nil {
					return err
				}
			}
			n, reported, err := p.Leave(c.ctx)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.stderr, "This machine has left the pool %s. Its node file is kept as %s.left.\n",
				n.Pool, n.File)
			if !stops {
				fmt.Fprintf(c.stderr, "If roost master runs for it, stop it now: it cannot come back.\n")
			}
			if reported != nil {
				return fmt.Errorf("the authority has not heard of it (run roost revoke %s there): %w", n.Name, reported)
			}
			return nil
		},
	}
}

package node

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/enroll"
)

// nodeInstallFlags are the flags of commands that change what a machine is.
func nodeInstallFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "root", Usage: "put everything below `DIR` instead of /, to try it out", Value: "/"},
		&ucli.BoolFlag{Name: "no-start", Usage: "start nothing; say what would"},
	}
}

func nodeDirectory(c *frame.Invocation) enroll.NodePaths {
	return enroll.NodePaths{Root: c.StringFlag("root")}
}

// InitCommand returns roost init: begin a pool on this machine.
func InitCommand() *frame.Command {
	return &frame.Command{
		Name: "init", Group: frame.GroupPool, Summary: "begin a pool on this machine", MaxOperands: 0,
		Description: "Makes this machine the first of a pool: its authority, which lets other machines in, and " +
			"its central manager, which knows what there is and decides who gets what. " +
			"People can submit here, too. Prints the line that makes another machine a member. With systemd the pool " +
			"starts now and whenever the machine does.",
		Examples: []frame.Example{
			{Line: "sudo roost init --name physics", Description: "begin the pool physics"},
			{Line: "sudo roost init --server --address 10.0.0.1",
				Description: "jobs run here, too, and others reach this machine by that address"},
		},
		Flags: append([]ucli.Flag{
			&ucli.StringFlag{Name: "name", Usage: "the `POOL`'s name; this machine's unless given"},
			&ucli.StringFlag{Name: "address", Usage: "where other machines reach this one, as `HOST[:PORT]`; " +
				"the port is the first of six, 9700 unless given"},
			&ucli.BoolFlag{Name: "server", Usage: "run jobs on this machine as well"},
		}, nodeInstallFlags()...),
		Run: initPool,
	}
}

func initPool(c *frame.Invocation) error {
	n, token, err := enroll.Init(enroll.InitOptions{NodePaths: nodeDirectory(c), Pool: c.StringFlag("name"),
		Address: c.StringFlag("address"), Server: c.Flag("server")})
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Stderr, "The pool %s begins on this machine, %s. Its node file is %s; its authority's key is in "+
		"%s, of which you should keep a copy.\n",
		n.Pool, n.Name, n.File, n.Authority.Dir)
	if err := startNode(c, n.File, false); err != nil {
		return err
	}
	more := "roost token"
	if !nodeDirectory(c).IsSystem() {
		more += " --config " + n.File
	}
	fmt.Fprintf(c.Stderr, "To make another machine a server of the pool, run this on it, as root, within an hour. "+
		"It is good for one machine; %s prints more.\n\n", more)
	fmt.Fprintf(c.Stdout, "roost join %s %s --server\n", n.AuthorityAt, token)
	return nil
}

// startNode starts the node of that file, or says how that is done.
func startNode(c *frame.Invocation, file string, desktop bool) error {
	p := nodeDirectory(c)
	if !p.Systemd() || c.Flag("no-start") {
		command := "roost master --config " + file
		if p.IsSystem() && p.Systemd() {
			command = "systemctl enable --now " + strings.Join(enroll.NodeUnits(desktop), " ")
		}
		fmt.Fprintf(c.Stderr, "Start it with:\n\n    %s\n\n", command)
		return nil
	}
	if !enroll.UnitsInstalled() {
		if _, err := installNode(c, enroll.NodePaths{}, ""); err != nil {
			return err
		}
	}
	if err := enroll.StartUnits(c.Context, enroll.NodeUnits(desktop)...); err != nil {
		return fmt.Errorf("%w (the node file and the keys are in place: roost master --config %s starts it by hand)",
			err, file)
	}
	return nil
}

// InstallCommand returns roost install: put programs, manual, completions and units on
// this machine.
func InstallCommand() *frame.Command {
	return &frame.Command{
		Name: "install", Group: frame.GroupPool, Summary: "put programs, manual, completions and units on this machine",
		MaxOperands: 0,
		Description: "Copies this program and roost-starter, the names of the PBS commands, the manual, the " +
			"completions and the units of systemd to where they are found. What is there and the same is left alone. " +
			"It makes the machine no member of a pool: roost init and roost join do that, and install what is " +
			"missing on their own.",
		Examples: []frame.Example{
			{Line: "sudo roost install", Description: "install below /usr/local"},
			{Line: "roost install --prefix ~/.local", Description: "install for yourself"},
		},
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "prefix", Usage: "install below `DIR`", Value: "/usr/local"},
			&ucli.StringFlag{Name: "root", Usage: "put everything below `DIR` instead of /, as for a package",
				Value: "/"},
			&ucli.BoolFlag{Name: "slurm",
				Usage: "install the Slurm commands also where there are others of their names"},
		},
		Run: func(c *frame.Invocation) error {
			n, err := installNode(c, nodeDirectory(c), c.StringFlag("prefix"))
			if err == nil {
				fmt.Fprintf(c.Stderr, "%s changed below %s.\n", document.Plural(n, "file"), c.StringFlag("prefix"))
			}
			return err
		},
	}
}

func installNode(c *frame.Invocation, p enroll.NodePaths, prefix string) (changed int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("own program: %w: %w", roost.NoInput, err)
	}
	links := map[string]string{}
	for _, cmd := range c.All() {
		name := strings.TrimPrefix(cmd.Name, frame.SlurmPrefix)
		if !cmd.IsLink() || cmd.Group == frame.GroupSlurm && !c.Flag("slurm") && isOthers(name) {
			continue
		}
		links[name] = cmp.Or(cmd.LinkProgram, frame.MainProgram)
	}
	return enroll.Install(enroll.InstallOptions{NodePaths: p, Prefix: prefix, Program: self, Links: links,
		Completions: frame.CompletionScripts()})
}

// isOthers reports whether there is a command of that name that is none of Roost.
func isOthers(name string) bool {
	path, err := exec.LookPath(name)
	if err != nil {
		return false
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	return !strings.HasPrefix(filepath.Base(path), frame.MainProgram)
}

// LeaveCommand returns roost leave: take this machine out of its pool.
func LeaveCommand() *frame.Command {
	return &frame.Command{
		Name: "leave", Group: frame.GroupPool, Summary: "take this machine out of its pool", MaxOperands: 0,
		Description: "Stops the node, has its certificate revoked, and takes its key and its node file away. Jobs in " +
			"its queue stay in its directory. The machine with the pool's authority cannot leave.",
		Examples: []frame.Example{
			{Line: "sudo roost leave", Description: "this machine is no member any more"},
			{Line: "roost leave --root /tmp/try", Description: "end what was tried out there"},
		},
		Flags: nodeInstallFlags(),
		Run: func(c *frame.Invocation) error {
			p := nodeDirectory(c)
			stops := p.Systemd() && !c.Flag("no-start") && enroll.UnitsInstalled()
			if stops {
				if err := enroll.StopUnits(c.Context, enroll.NodeUnits(true)...); err != nil {
					return err
				}
			}
			n, reported, err := p.Leave(c.Context)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.Stderr, "This machine has left the pool %s. Its node file is kept as %s.left.\n",
				n.Pool, n.File)
			if !stops {
				fmt.Fprintf(c.Stderr, "If roost master runs for it, stop it now: it cannot come back.\n")
			}
			if reported != nil {
				return fmt.Errorf("the authority has not heard of it (run roost revoke %s there): %w", n.Name, reported)
			}
			return nil
		},
	}
}

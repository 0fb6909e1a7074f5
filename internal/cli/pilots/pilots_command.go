package pilots

import (
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/config/pooldir"
	"github.com/roost-batch/roost/internal/provision"
	"github.com/roost-batch/roost/internal/provision/provider"
)

// Command returns roost pilots.
func Command() *frame.Command {
	return &frame.Command{
		Name: "pilots", Group: frame.GroupChange, Summary: "get machines for your tasks from other batch systems",
		Synopsis: "[add NAME | list | show NAME | stop NAME | resume NAME | remove NAME | run]", MaxOperands: -1,
		Branches: branches, Run: func(c *frame.Invocation) error { return c.RunSubcommand(branches()) },
		Description: "A provider is another batch system in which you have an account. While tasks of yours wait " +
			"that could run there, your provisioner submits jobs to it. Each starts a pilot, which joins the pool " +
			"and runs tasks of yours alone until it has nothing to do or its time is up. add describes a provider, " +
			"tries it with a job that is cancelled at once, and starts the provisioner if none runs. list says how " +
			"providers do. show says all about one, with the reason for which waiting tasks get no pilot there. " +
			"stop cancels what is queued and submits nothing until resume, which also forgets what went wrong. " +
			"remove takes a provider away. run is the provisioner itself.",
		Examples: []frame.Example{
			{Line: "roost pilots add uni --kind slurm --walltime 12h --via 'ssh login.uni.example' " +
				"--option=--account=physics", Description: "use your account on a cluster"},
			{Line: "roost pilots show uni", Description: "its jobs there, and why tasks still wait"},
			{Line: "roost pilots stop uni", Description: "no more from there for now"},
		},
		Flags: append([]ucli.Flag{frame.JSONFlag(),
			&ucli.BoolFlag{Name: "force", Usage: "remove: also while its pilots run; their tasks start elsewhere"},
			&ucli.BoolFlag{Name: "no-trial", Usage: "add: submit no job to try the settings"},
			&ucli.BoolFlag{Name: "no-start", Usage: "add: start no provisioner"},
		}, settingFlags()...),
	}
}

// settingFlags are the flags of add, each for one setting of the file.
func settingFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "kind", Usage: "add: slurm, pbs, condor, gridengine or command is the `KIND` of " +
			"batch system"},
		&ucli.StringFlag{Name: "walltime", Usage: "add: how `LONG` each of its jobs lasts at most, as in 12h"},
		&ucli.StringFlag{Name: "cpus", Usage: "add: `N` cores of a node; else the first pilot shows it"},
		&ucli.StringFlag{Name: "memory", Usage: "add: the `SIZE` of a node's memory, as in 64GiB"},
		&ucli.StringFlag{Name: "disk", Usage: "add: the `SIZE` of a node's disk"},
		&ucli.IntFlag{Name: "gpus", Usage: "add: `N` GPUs of a node"},
		&ucli.IntFlag{Name: "nodes-each", Usage: "add: each job has up to `N` nodes"},
		&ucli.IntFlag{Name: "max-pilots", Usage: "add: at most `N` pilots at a time"},
		&ucli.IntFlag{Name: "max-queued", Usage: "add: at most `N` jobs wait there at a time"},
		&ucli.Float64Flag{Name: "max-node-hours", Usage: "add: at most `N` node-hours in any 24 hours"},
		&ucli.StringFlag{Name: "idle", Usage: "add: a pilot without tasks ends after this `TIME`"},
		&ucli.BoolFlag{Name: "tasks-without-walltime", Usage: "add: tasks without a walltime may run there, too, and " +
			"may be ended"},
		&ucli.StringSliceFlag{Name: "option", Usage: "add: an `ARGUMENT` for the program that submits; repeat it " +
			"for more"},
		&ucli.StringFlag{Name: "via", Usage: "add: the `LINE` in front of each program, as in 'ssh login.example'"},
		&ucli.StringFlag{Name: "directory", Usage: "add: the `DIR` there for the files of pilots, which its nodes see"},
		&ucli.StringFlag{Name: "program", Usage: "add: the `PATH` of roost there"},
		&ucli.StringFlag{Name: "before", Usage: "add: a shell `LINE` before the pilot, as in 'module load gcc'"},
		&ucli.StringFlag{Name: "after", Usage: "add: a shell `LINE` after it"},
		&ucli.StringFlag{Name: "submit", Usage: "add, kind command: the `LINE` that submits; see roost-pilots(5)"},
		&ucli.StringFlag{Name: "status", Usage: "add, kind command: the `LINE` that says how jobs do"},
		&ucli.StringFlag{Name: "cancel", Usage: "add, kind command: the `LINE` that cancels"},
		&ucli.StringFlag{Name: "facts", Usage: "add, kind command: the `LINE` that finds a job"},
	}
}

func branches() []frame.Subcommand {
	const name = "the name of a provider"
	json := []string{"json"}
	var settings []string
	for _, f := range settingFlags() {
		settings = append(settings, f.Names()[0])
	}
	return []frame.Subcommand{
		{Name: "add", Summary: "describe a provider, and try it", MinOperands: 1, MaxOperands: 1, OperandNames: name,
			Flags: append([]string{"json", "no-trial", "no-start"}, settings...), Run: addProvider},
		{Name: "list", Summary: "how providers do", Flags: json, Run: listProviders},
		{Name: "show", Summary: "all about a provider", Flags: json, MaxOperands: 1, OperandNames: name,
			Run: showProvider},
		{Name: "stop", Summary: "submit nothing there until it is resumed", Flags: json, MinOperands: 1, MaxOperands: 1,
			OperandNames: name, Run: order("stop", "is stopped; what was queued there is cancelled")},
		{Name: "resume", Summary: "let a stopped provider go on", Flags: json, MinOperands: 1, MaxOperands: 1,
			OperandNames: name, Run: order("resume", "goes on")},
		{Name: "remove", Summary: "take a provider away", Flags: []string{"json", "force"}, MinOperands: 1,
			MaxOperands: 1, OperandNames: name, Run: removeProvider},
		{Name: "run", Summary: "run the provisioner, in the foreground", Run: runProvisioner},
	}
}

// places are the files of a provisioner.
type places struct{ dir, file string }

func findPlaces(c *frame.Invocation) (p places, err error) {
	if p.dir, err = pooldir.PilotsDir(c.StringFlag("dir"), c.Getenv); err == nil {
		p.file, err = config.PilotsFile(c.Getenv)
	}
	return p, err
}

func (p places) load() ([]provider.Settings, error) { return config.LoadPilots(p.file) }

// ask gives an order to the provisioner.
func ask(c *frame.Invocation, verb, name string) (provision.Document, error) {
	p, err := findPlaces(c)
	if err != nil {
		return provision.Document{}, err
	}
	a, err := provision.Ask(p.dir, provision.Order{Verb: verb, Provider: name}, p.load)
	return a.Document, err
}

// order runs stop and resume.
func order(verb, done string) func(c *frame.Invocation, args []string) error {
	return func(c *frame.Invocation, args []string) error {
		d, err := ask(c, verb, args[0])
		if err != nil {
			return err
		}
		return printResult(c, d, args[0], done)
	}
}

// printResult prints that an order was done; in JSON it is the provider as it is now.
func printResult(c *frame.Invocation, d provision.Document, name, done string) error {
	if c.WantsJSON() {
		return printJSON(c, d, name)
	}
	fmt.Fprintf(c.Stdout, "provider %s %s\n", name, done)
	return nil
}

// removeProvider takes a provider out of the file. The provisioner cancels what it has.
func removeProvider(c *frame.Invocation, args []string) error {
	if !c.Flag("force") {
		if _, err := ask(c, "removable", args[0]); err != nil {
			return err
		}
	}
	p, err := findPlaces(c)
	if err != nil {
		return err
	}
	if err := config.RemovePilotProvider(p.file, args[0]); err != nil {
		return err
	}
	d, err := ask(c, "list", "")
	if err != nil {
		return err
	}
	if !d.Running && strings.Contains(fmt.Sprint(d.Providers), args[0]) {
		fmt.Fprintf(c.Stderr, "roost: no provisioner runs: its jobs there are cancelled when the next one starts\n")
	}
	if c.WantsJSON() {
		return printJSON(c, d, "")
	}
	fmt.Fprintf(c.Stdout, "provider %s is removed\n", args[0])
	return nil
}

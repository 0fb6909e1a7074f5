package steps

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/slurm/step"
)

// MpiexecCommand returns roost mpiexec.
func MpiexecCommand() *frame.Command {
	return &frame.Command{
		Name: "mpiexec", Group: frame.GroupRun, Summary: "start the ranks of an MPI program in your job",
		Synopsis: "[OPTION…] PROGRAM [ARGUMENT…] [: [OPTION…] PROGRAM [ARGUMENT…]]…", RawArgs: true, MaxOperands: -1,
		Run: runMpiexec,
		Description: "Starts the ranks of an MPI program on the machines of the job in which it runs. They find each " +
			"other by PMI-1 or PMI-2, which MPICH, Intel MPI and MVAPICH speak. Takes the options of their mpiexec. " +
			"For Open MPI call mpirun, which finds the machines, too.",
		Examples: []frame.Example{
			{Line: "roost mpiexec ./ring", Description: "as many ranks as the job has places for"},
			{Line: "roost mpiexec -n 8 -ppn 2 -genv OMP_NUM_THREADS 4 ./model input.nml",
				Description: "eight ranks, two on each machine"},
			{Line: "roost mpiexec -n 1 ./server : -n 7 ./client", Description: "two programs with one MPI_COMM_WORLD"},
		},
		Flags: mpiexecFlags(),
	}
}

// mpiexecFlags are the options for the manual. They may be written with one dash.
func mpiexecFlags() []ucli.Flag {
	text := func(name, usage string, aliases ...string) ucli.Flag {
		return &ucli.StringFlag{Name: name, Aliases: aliases, Usage: usage}
	}
	boolean := func(name, usage string, aliases ...string) ucli.Flag {
		return &ucli.BoolFlag{Name: name, Aliases: aliases, Usage: usage}
	}
	return []ucli.Flag{
		text("np", "run so many ranks `COUNT`; otherwise one for each place of the job", "n"),
		text("ppn", "so many ranks `COUNT` on each machine"),
		text("hosts", "on these machines of the job alone `HOSTS`"),
		text("hostfile", "likewise, from a `FILE` with a machine on each line", "f"),
		text("genv", "set a variable for all ranks `NAME VALUE`"),
		text("env", "set a variable for the ranks of this program `NAME VALUE`"),
		text("genvlist", "pass on these variables alone `NAMES`"),
		boolean("genvnone", "pass on no variables"),
		text("wdir", "run in this `DIR`"),
		boolean("prepend-rank", "put the number of the rank before each line", "l"),
		text("stdin", "who reads standard input `RANK`: a number, all or none; 0 if it is not given", "s"),
		text("outfile-pattern", "write output to this `FILE`, with %r for the rank and %h for the machine"),
		text("errfile-pattern", "write errors to this `FILE`"),
		text("timeout", "end all ranks after so many `SECONDS`"),
		boolean("disable-auto-cleanup", "leave the other ranks running when one fails"),
	}
}

// mpiProgram is one of the programs of a command line, whose ranks follow those of the
// one before.
type mpiProgram struct {
	count       int // 0: not stated
	environment []string
	directory   string
	command     []string
}

// mpiOptions is what roost mpiexec was asked for.
type mpiOptions struct {
	programs      []mpiProgram
	perMachine    int
	machines      []string // empty: all of the job
	environment   []string // of all ranks
	only          []string // variables that are passed on
	isOnly        bool     // no others are
	directory     string   // for all programs
	output        string
	errors        string
	input         string
	label         bool
	timeout       time.Duration
	isLeftRunning bool // the others, when one rank fails
}

// mpiOption says how many words follow an option, and what it means; nil: it has no
// effect here.
type mpiOption struct {
	words int
	apply func(o *mpiOptions, p *mpiProgram, words []string) error
}

// mpiexecOptions are the options of Hydra's mpiexec (MPICH), and the everyday ones of
// Open MPI's. Those about launchers and binding have no effect: the job says where ranks
// run.
func mpiexecOptions() map[string]mpiOption {
	options := map[string]mpiOption{
		"n": {1, (*mpiOptions).setCount},
		"ppn": {1, func(o *mpiOptions, _ *mpiProgram, w []string) (err error) {
			o.perMachine, err = rankCount(w[0])
			return err
		}},
		"hosts": {1, func(o *mpiOptions, _ *mpiProgram, w []string) error {
			o.machines = append(o.machines, hostNames(strings.Split(w[0], ","))...)
			return nil
		}},
		"f": {1, (*mpiOptions).readHosts},
		"genv": {2, func(o *mpiOptions, _ *mpiProgram, w []string) error {
			o.environment = append(o.environment, strings.Join(w, "="))
			return nil
		}},
		"env": {2, func(_ *mpiOptions, p *mpiProgram, w []string) error {
			p.environment = append(p.environment, strings.Join(w, "="))
			return nil
		}},
		"genvlist": {1, func(o *mpiOptions, _ *mpiProgram, w []string) error {
			o.only, o.isOnly = append(o.only, strings.Split(w[0], ",")...), true
			return nil
		}},
		"genvnone": {0, func(o *mpiOptions, _ *mpiProgram, _ []string) error { o.isOnly = true; return nil }},
		"wdir":     {1, func(_ *mpiOptions, p *mpiProgram, w []string) error { p.directory = w[0]; return nil }},
		"gwdir":    {1, func(o *mpiOptions, _ *mpiProgram, w []string) error { o.directory = w[0]; return nil }},
		"l":        {0, func(o *mpiOptions, _ *mpiProgram, _ []string) error { o.label = true; return nil }},
		"s":        {1, (*mpiOptions).setInput},
		"outfile-pattern": {1, func(o *mpiOptions, _ *mpiProgram, w []string) error {
			o.output = rankPattern(w[0])
			return nil
		}},
		"errfile-pattern": {1, func(o *mpiOptions, _ *mpiProgram, w []string) error {
			o.errors = rankPattern(w[0])
			return nil
		}},
		"timeout": {1, func(o *mpiOptions, _ *mpiProgram, w []string) error {
			seconds, err := rankCount(w[0])
			o.timeout = time.Duration(seconds) * time.Second
			return err
		}},
		"disable-auto-cleanup": {0, func(o *mpiOptions, _ *mpiProgram, _ []string) error {
			o.isLeftRunning = true
			return nil
		}},
	}
	addMpiAliases(options)
	return options
}

// addMpiAliases adds other spellings, and options without an effect.
func addMpiAliases(options map[string]mpiOption) {
	for name, as := range map[string]string{"np": "n", "c": "n", "perhost": "ppn", "npernode": "ppn", "N": "ppn",
		"host": "hosts", "H": "hosts", "hostfile": "f", "machinefile": "f", "machine": "f",
		"genvall": "", "wd": "wdir", "prepend-rank": "l", "tag-output": "l", "stdin": "s", "outfile": "outfile-pattern",
		"errfile": "errfile-pattern", "envall": "", "envnone": "genvnone", "envlist": "genvlist"} {
		options[name] = options[as]
	}
	options["x"] = mpiOption{1, func(o *mpiOptions, _ *mpiProgram, w []string) error { // ALL are passed on in any case
		if strings.Contains(w[0], "=") {
			o.environment = append(o.environment, w[0])
		}
		return nil
	}}
	for _, name := range []string{"bind-to", "map-by", "rank-by", "membind", "launcher", "launcher-exec", "bootstrap",
		"bootstrap-exec", "rmk", "iface", "usize", "topolib", "ranks-per-proc", "profile", "pmi-port", "demux",
		"localhost", "ckpointlib", "ckpoint-interval", "ckpoint-prefix", "ckpoint-num", "prepend-pattern"} {
		options[name] = mpiOption{words: 1}
	}
	for _, name := range []string{"verbose", "v", "print-all-exitcodes", "disable-hostname-propagation", "order-nodes",
		"enable-x", "disable-x", "skip-launch-node", "genvinherit", "oversubscribe", "bind-to-core", "bind-to-none",
		"report-bindings", "allow-run-as-root", "display-map", "q"} {
		options[name] = mpiOption{}
	}
	for _, name := range []string{"mca", "gmca", "prtemca", "pmixmca"} {
		options[name] = mpiOption{words: 2}
	}
}

func (o *mpiOptions) setCount(p *mpiProgram, words []string) (err error) {
	p.count, err = rankCount(words[0])
	return err
}

// readHosts reads the names of a file of machines, a line each, with ":COUNT" behind them
// or not.
func (o *mpiOptions) readHosts(_ *mpiProgram, words []string) error {
	text, err := os.ReadFile(words[0])
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if fields := strings.Fields(line); len(fields) > 0 {
			o.machines = append(o.machines, hostNames(fields[:1])...)
		}
	}
	return nil
}

func (o *mpiOptions) setInput(_ *mpiProgram, words []string) error {
	if _, err := strconv.ParseUint(words[0], 10, 31); err != nil && words[0] != "all" && words[0] != "none" {
		return fmt.Errorf("-s %s: standard input goes to all, to none or to one rank by its number", words[0])
	}
	o.input = words[0]
	return nil
}

func rankCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1<<20 {
		return 0, fmt.Errorf("%q is no number from 1 on", text)
	}
	return n, nil
}

// hostNames leaves out counts behind names.
func hostNames(words []string) (names []string) {
	for _, w := range words {
		name, _, _ := strings.Cut(w, ":")
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// rankPattern makes a pattern of srun of one of Hydra's.
func rankPattern(text string) string {
	return strings.NewReplacer("%r", "%t", "%h", "%N", "%p", "%n", "%g", "0").Replace(text)
}

// parseMpiexec reads a command line.
func parseMpiexec(args []string) (*mpiOptions, error) {
	o, table := &mpiOptions{input: "0"}, mpiexecOptions()
	for len(args) > 0 || len(o.programs) == 0 {
		p := mpiProgram{}
		for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
			word := args[0]
			args = args[1:]
			if word == "--" {
				break
			}
			name, value, joined := strings.Cut(strings.TrimPrefix(word[1:], "-"), "=")
			option, known := table[name]
			if (name == "genv" || name == "env") && len(args) > 0 && strings.Contains(args[0], "=") {
				option.words = 1 // NAME=VALUE
			}
			switch {
			case !known:
				return nil, fmt.Errorf("option %s is not known: roost-mpiexec(1) lists them", word)
			case joined && option.words == 1:
				args = append([]string{value}, args...)
			case joined:
				return nil, fmt.Errorf("option %s has no such value: roost-mpiexec(1) lists them", word)
			case len(args) < option.words:
				return nil, fmt.Errorf("option %s: something is missing behind it", word)
			}
			if option.apply != nil {
				if err := option.apply(o, &p, args[:option.words]); err != nil {
					return nil, fmt.Errorf("option %s: %w", word, err)
				}
			}
			args = args[option.words:]
		}
		end := slices.Index(args, ":")
		if end < 0 {
			end = len(args)
		}
		if p.command = args[:end]; len(p.command) == 0 {
			return nil, errors.New("there is no program to run: roost mpiexec -n 4 PROGRAM")
		}
		o.programs = append(o.programs, p)
		args = args[min(end+1, len(args)):]
	}
	return o, nil
}

// runMpiexec is roost mpiexec.
func runMpiexec(c *frame.Invocation) error {
	if len(c.Args) > 0 {
		switch strings.TrimLeft(c.Args[0], "-") {
		case "h", "help":
			c.PrintHelp(c.Stdout, c.Command)
			return nil
		case "V", "version", "info":
			fmt.Fprintln(c.Stdout, "roost mpiexec, ranks by PMI-1 and PMI-2")
			return nil
		}
	}
	o, err := parseMpiexec(c.Args)
	if err != nil {
		return frame.UsageErrorf("%v", err)
	}
	if seconds, err := strconv.Atoi(c.Getenv("MPIEXEC_TIMEOUT")); err == nil && seconds > 0 && o.timeout == 0 {
		o.timeout = time.Duration(seconds) * time.Second
	}
	if !isInAllocation(c) {
		return frame.UsageErrorf("this runs in no job with machines for ranks: call it in the script of one, as qsub " +
			"-l select=2:ncpus=4, sbatch -N 2 or a job file with led = true makes it; or let the job start its ranks " +
			"by itself, with mpi = \"pmi1\"")
	}
	job, err := readAllocation(c)
	if err != nil {
		return err
	}
	p := &stepPlan{c: c, job: job, caller: "mpiexec", options: o.stepOptions()}
	if err := o.complete(p.options, job); err != nil {
		return err
	}
	p.c.Env = withVariables(c.Env, o.environment)
	release, err := p.prepare()
	if err != nil {
		return p.refuseStep(err)
	}
	defer release()
	p.programs = o.commands(p.placement.Size)
	return p.run()
}

// stepOptions are the options of the step that runs the ranks.
func (o *mpiOptions) stepOptions() *stepOptions {
	s := &stepOptions{command: o.programs[0].command, output: o.output, errors: o.errors, input: o.input,
		label: o.label, directory: o.directory, killOnBadExit: !o.isLeftRunning, limit: o.timeout,
		name: filepath.Base(o.programs[0].command[0]), ranks: true}
	s.request = step.Request{TasksPerNode: o.perMachine, NodeList: o.machines}
	if s.directory == "" && len(o.programs) == 1 {
		s.directory = o.programs[0].directory
	}
	if o.isOnly { // and what -genv sets
		names := slices.Clone(o.only)
		for _, v := range o.environment {
			name, _, _ := strings.Cut(v, "=")
			names = append(names, name)
		}
		s.export = cmp.Or(strings.Join(names, ","), "NONE")
	}
	return s
}

// complete finds the number of ranks, and checks the machines.
func (o *mpiOptions) complete(s *stepOptions, job *allocation) error {
	places, cpus, machines := 0, 0, 0
	for _, m := range job.machines {
		if short, _, _ := strings.Cut(m.Name, "."); len(o.machines) == 0 || slices.Contains(o.machines, m.Name) ||
			slices.Contains(o.machines, short) {
			places, cpus, machines = places+m.Tasks, cpus+max(m.CPUs, m.Tasks), machines+1
		}
	}
	if machines < len(o.machines) || machines == 0 {
		var names []string
		for _, m := range job.machines {
			names = append(names, m.Name)
		}
		return frame.UsageErrorf("the job has the machines %s, and not all of %s", strings.Join(names, ", "),
			strings.Join(o.machines, ", "))
	}
	if o.perMachine > 0 {
		places = o.perMachine * machines
	}
	for i := range o.programs {
		p := &o.programs[i]
		if p.count == 0 {
			if p.count = 1; len(o.programs) == 1 {
				p.count = places
			}
		}
		s.request.Tasks += p.count
	}
	s.request.Overcommit = s.request.Tasks > cpus
	switch most := o.perMachine * machines; {
	case o.perMachine == 0:
	case s.request.Tasks < most:
		s.request.Nodes = (s.request.Tasks + o.perMachine - 1) / o.perMachine
	case s.request.Tasks > most: // Hydra begins again with the first machine
		s.request.TasksPerNode = (s.request.Tasks + machines - 1) / machines
	}
	return nil
}

// commands are the command lines of the ranks.
func (o *mpiOptions) commands(size int) (list [][]string) {
	for _, p := range o.programs {
		command := p.command
		if prefix := p.prefix(len(o.programs) > 1 || o.directory != ""); len(prefix) > 0 {
			command = append(prefix, command...)
		}
		for range p.count {
			list = append(list, command)
		}
	}
	return list[:min(len(list), size)]
}

// prefix is what is before a program that has variables or a directory of its own.
func (p *mpiProgram) prefix(ownDirectory bool) (words []string) {
	if ownDirectory && p.directory != "" {
		words = append(words, "-C", p.directory)
	}
	if words = append(words, p.environment...); len(words) == 0 {
		return nil
	}
	return append([]string{"/usr/bin/env"}, words...)
}

// withVariables sets variables of an environment.
func withVariables(environment, set []string) []string {
	list := slices.DeleteFunc(slices.Clone(environment), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.ContainsFunc(set, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	})
	return append(list, set...)
}

package flows

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/submit/dag"
)

// SubmitDAGCommand returns condor_submit_dag of HTCondor.
func SubmitDAGCommand() *frame.Command {
	return &frame.Command{
		Name: "condor_submit_dag", Group: frame.GroupCondor, Summary: "run the flow of DAG files",
		Synopsis: "[OPTION…] FILE…", RawArgs: true, Run: runSubmitDAG,
		Description: "Submits DAG files as the command of that name of HTCondor does, with its options. There is no " +
			"condor_dagman process, so options about it and its files have no effect. roost flow submit says more.",
		Examples: []frame.Example{
			{Line: "condor_submit_dag diamond.dag", Description: "run a flow"},
			{Line: "condor_submit_dag -maxjobs 50 -batch-name run7 sweep.dag",
				Description: "no more than 50 jobs in the queue at a time"},
		},
	}
}

// submitDAGLine is the command line of condor_submit_dag.
type submitDAGLine struct {
	flowOptions
	files          []string
	noSubmit, help bool
	ignored        []string // options without effect here
}

// dagOption is an option of condor_submit_dag.
type dagOption struct {
	word     string
	least    int  // letters that are enough
	hasValue bool // the next word belongs to it
	set      func(l *submitDAGLine, value string) error
}

// dagOptions lists the options (HTCondor's manual, page condor_submit_dag). Of those with
// a common beginning the shorter forms belong to the first.
func dagOptions() []dagOption {
	flag := func(set func(l *submitDAGLine)) func(*submitDAGLine, string) error {
		return func(l *submitDAGLine, _ string) error { set(l); return nil }
	}
	given := func(flag string, set func(*submitDAGLine, string) error) func(*submitDAGLine, string) error {
		return func(l *submitDAGLine, value string) error {
			l.set[flag] = true
			return set(l, value)
		}
	}
	number := func(to func(l *submitDAGLine) *int) func(*submitDAGLine, string) error {
		return func(l *submitDAGLine, value string) error {
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 || n > roost.MaxTasks {
				return fmt.Errorf("%q is no number from 0 to %d", value, roost.MaxTasks)
			}
			*to(l) = n
			return nil
		}
	}
	options := []dagOption{
		{"help", 1, false, flag(func(l *submitDAGLine) { l.help = true })},
		{"no_submit", 4, false, flag(func(l *submitDAGLine) { l.noSubmit = true })},
		{"usedagdir", 3, false, flag(func(l *submitDAGLine) { l.useDirectory = true })},
		{"maxidle", 4, true, given("max-idle", number(func(l *submitDAGLine) *int { return &l.limits.IdleTasks }))},
		{"maxjobs", 4, true, given("max-jobs", number(func(l *submitDAGLine) *int { return &l.limits.Jobs }))},
		{"maxpre", 5, true, given("max-pre", number(func(l *submitDAGLine) *int { return &l.limits.Pre }))},
		{"maxpost", 5, true, given("max-post", number(func(l *submitDAGLine) *int { return &l.limits.Post }))},
		{"dorescuefrom", 6, true, number(func(l *submitDAGLine) *int { return &l.rescue })},
		{"autorescue", 5, true, func(l *submitDAGLine, value string) error {
			if value == "0" && l.rescue < 0 {
				l.rescue = 0
			}
			return nil
		}},
		{"force", 1, false, flag(func(l *submitDAGLine) { l.rescue = max(l.rescue, 0) })},
		{"alwaysrunpost", 6, false, given("always-run-post", flag(func(l *submitDAGLine) { l.alwaysRunPost = true }))},
		{"dontalwaysrunpost", 8, false, given("always-run-post",
			flag(func(l *submitDAGLine) { l.alwaysRunPost = false }))},
		{"config", 4, true, func(l *submitDAGLine, value string) error { l.config = value; return nil }},
		{"load_save", 6, true, func(l *submitDAGLine, value string) error { l.loadSave = value; return nil }},
		{"batch-name", 5, true, func(l *submitDAGLine, value string) error { l.name = value; return nil }},
		{"priority", 2, true, func(l *submitDAGLine, value string) (err error) {
			l.priority, err = strconv.Atoi(value)
			l.priority = min(max(l.priority, roost.MinPriority), roost.MaxPriority)
			return err
		}},
	}
	for _, w := range []struct {
		word     string
		least    int
		hasValue bool
	}{
		{"verbose", 1, false}, {"debug", 1, true}, {"update_submit", 3, false}, {"import_env", 6, false},
		{"suppress_notification", 3, false}, {"dont_suppress_notification", 6, false}, {"notification", 5, true},
		{"outfile_dir", 3, true}, {"lib_err", 7, true}, {"lib_out", 7, true},
		{"dagman", 3, true}, {"allowversionmismatch", 8, false}, {"no_recurse", 4, false}, {"do_recurse", 4, false},
		{"allowlogerror", 6, false}, {"dorecov", 6, false}, {"dumprescue", 2, false}, {"valgrind", 3, false},
		{"include_env", 8, true}, {"insert_env", 8, true}, {"append", 6, true}, {"insert_sub_file", 8, true},
		{"schedd-daemon-ad-file", 14, true}, {"schedd-address-file", 10, true},
	} {
		options = append(options, dagOption{w.word, w.least, w.hasValue, func(l *submitDAGLine, _ string) error {
			l.ignored = append(l.ignored, "-"+w.word)
			return nil
		}})
	}
	return options
}

// findDAGOption finds an option by its word, which may be shortened. Case does not
// matter.
func findDAGOption(arg string) (dagOption, bool) {
	word := strings.ToLower(strings.TrimLeft(arg, "-"))
	for _, o := range dagOptions() {
		if len(word) >= o.least && strings.HasPrefix(o.word, word) {
			return o, true
		}
	}
	return dagOption{}, false
}

// parseSubmitDAG reads the command line.
func parseSubmitDAG(args []string) (l submitDAGLine, err error) {
	l.rescue, l.limits, l.writesRescue, l.set = -1, dag.DefaultLimits(), true, map[string]bool{}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if !strings.HasPrefix(arg, "-") {
			l.files = append(l.files, arg)
			continue
		}
		o, ok := findDAGOption(arg)
		if !ok {
			return l, fmt.Errorf("unknown option %s", arg)
		}
		value := ""
		if o.hasValue {
			if len(args) == 0 {
				return l, fmt.Errorf("%s needs a value", arg)
			}
			value, args = args[0], args[1:]
		}
		if err := o.set(&l, value); err != nil {
			return l, fmt.Errorf("%s: %w", arg, err)
		}
	}
	if len(l.files) == 0 && !l.help {
		return l, fmt.Errorf("no DAG file is named")
	}
	return l, nil
}

// ruler is the line around what condor_submit_dag prints.
const ruler = "-----------------------------------------------------------------------"

func runSubmitDAG(c *frame.Invocation) error {
	l, err := parseSubmitDAG(c.Args)
	if err != nil {
		fmt.Fprintf(c.Stderr, "ERROR: %v\nsee: condor_submit_dag -help\n", err)
		return frame.ExitError(1)
	}
	if l.help {
		c.PrintHelp(c.Stdout, c.Command)
		return nil
	}
	p, err := compileFlow(c, l.files, &l.flowOptions)
	if err != nil {
		return err
	}
	for _, word := range l.ignored {
		fmt.Fprintf(c.Stderr, "WARNING: %s has no effect here\n", word)
	}
	if l.noSubmit {
		fmt.Fprintf(c.Stdout, "\n%s\nNo errors in %s; nothing is submitted.\n%s\n", ruler, l.files[0], ruler)
		return nil
	}
	reply, err := sendFlow(c, p, l.flowOptions)
	if err != nil {
		return err
	}
	number, _, _ := strings.Cut(reply.GetIds()[0], ".")
	fmt.Fprintf(c.Stdout, "\n%s\nSubmitting job(s).\n1 job(s) submitted to cluster %s.\n%s\n", ruler, number, ruler)
	return nil
}

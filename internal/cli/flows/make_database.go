package flows

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/makefile"
)

// makeDatabase is what GNU make says of a makefile.
type makeDatabase struct {
	*makefile.Database
	hasErrors bool // which -k passed over
}

func (d makeDatabase) exit() error {
	if d.hasErrors {
		return frame.ExitError(makeExit)
	}
	return nil
}

// emptyGoal is a target that is there to be made and has no recipe.
const emptyGoal = ".roost-make"

// readMakefile asks GNU make about a makefile. First makefiles are remade that have rules
// themselves, as make does it before all else. What make says of errors is printed.
func readMakefile(c *frame.Invocation, l makeLine) (d makeDatabase, err error) {
	for _, name := range c.StringsFlag("file") {
		if name == "-" {
			return d, frame.WithHint(frame.UsageErrorf("-f -: a makefile cannot come from the standard input"),
				"the recipes read it again when they run: write it into a file")
		}
	}
	common := slices.Concat(l.flags, []string{"-n", "--no-print-directory"})
	out, stderr, err := callMake(c, l, slices.Concat(common, []string{"--eval=" + emptyGoal + ":", "--"}, l.variables,
		[]string{emptyGoal}))
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "'"+emptyGoal+"'") {
			fmt.Fprint(c.Stdout, line)
		}
	}
	if err != nil {
		c.Stderr.Write([]byte(stderr))
		return d, err
	}
	// Lines with $(MAKE) or a + run even with -n, and their effects would come too early.
	out, stderr, err = callMake(c, l, slices.Concat(common, []string{"-p", "--trace",
		"--eval=%: override SHELL := /bin/true", "--"}, l.variables, l.goals))
	c.Stderr.Write([]byte(stderr))
	if code := frame.ExitError(0); errors.As(err, &code) && l.keepsOn {
		d.hasErrors = true
	} else if err != nil {
		return d, err
	}
	if d.Database, err = makefile.ParseDatabase(out); err != nil {
		return d, frame.KindErrorf(roost.Unavailable, "%v", err)
	}
	return d, nil
}

// makeEnvironment is the environment of make and of recipes. It is that of the user,
// without what a make around this command has set.
func makeEnvironment(c *frame.Invocation) (list []string) {
	for _, v := range c.Env {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "GNUMAKEFLAGS", "MAKE_TERMOUT", "MAKE_TERMERR":
		default:
			list = append(list, v)
		}
	}
	return list
}

// callMake runs make and returns what it prints, in English. Its error is the exit status
// of make.
func callMake(c *frame.Invocation, l makeLine, args []string) (stdout, stderr string, err error) {
	program, err := frame.UserFiles{}.LookPath("make")
	if err != nil {
		return "", "", frame.WithHint(frame.KindErrorf(roost.NoInput, "there is no program make"),
			"roost make needs GNU make, here and on the machines: install it, as with apt install make")
	}
	cmd := exec.CommandContext(c.Context, program, args...)
	cmd.Dir = l.directory
	all := ""
	for _, v := range makeEnvironment(c) {
		switch name, value, _ := strings.Cut(v, "="); name {
		case "LC_ALL":
			all = value
		case "LC_MESSAGES", "LANGUAGE":
		default:
			cmd.Env = append(cmd.Env, v)
		}
	}
	if all != "" { // for everything but messages
		cmd.Env = append(cmd.Env, "LANG="+all, "LC_CTYPE="+all, "LC_COLLATE="+all, "LC_NUMERIC="+all, "LC_TIME="+all)
	}
	cmd.Env = append(cmd.Env, "LC_MESSAGES=C")
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err = cmd.Run()
	if status, ok := errors.AsType[*exec.ExitError](err); ok && status.Exited() {
		err = frame.ExitError(makeExit)
	} else if err != nil {
		err = frame.KindErrorf(roost.NoInput, "make: %v", err)
	}
	return out.String(), problems.String(), err
}

// makeLimit is what a recipe may need, as the name of a setting of jobs.
type makeLimit struct {
	setting string
	source  func(text string) (string, error) // the setting's value as a job file has it
}

func makeLimits() []makeLimit {
	number := func(text string) (string, error) {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n < 0 || n > 1e6 {
			return "", fmt.Errorf("%q is no number", text)
		}
		return strconv.FormatFloat(n, 'f', -1, 64), nil
	}
	size := func(text string) (string, error) {
		_, err := roost.ParseBytes(text)
		return quoteHCL(text), err
	}
	return []makeLimit{{"cpus", number}, {"memory", size}, {"gpus", number}, {"disk", size},
		{"walltime", func(text string) (string, error) {
			_, err := roost.ParseDuration(text)
			return quoteHCL(text), err
		}}}
}

// quoteHCL is a text as a job file has it.
func quoteHCL(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "${", "$${",
		"%{", "%%{").Replace(s) + `"`
}

// makeRecipe is a recipe with what it needs.
type makeRecipe struct {
	makefile.Recipe
	settings string // of its job, a line for each
	needs    string // the same for people
	cpus     string
}

// String is the recipe on a line, for people.
func (r makeRecipe) String() string {
	text := document.PrintableText(r.Target) + ": " + r.needs
	if len(r.After) > 0 {
		text += "; after " + document.PrintableText(strings.Join(r.After, " "))
	}
	return text
}

// makeRecipes returns the recipes that have to run.
func makeRecipes(c *frame.Invocation, d *makefile.Database, l makeLine) ([]makeRecipe, error) {
	recipes, err := d.Recipes()
	if err != nil {
		return nil, frame.WithHint(frame.KindErrorf(roost.Invalid, "%v", err), "recipes run one by one, and make "+
			"cannot leave such a target out: write its rule with one colon, or make it before by itself")
	}
	list := make([]makeRecipe, len(recipes))
	for i, recipe := range recipes {
		one := makeRecipe{Recipe: recipe, cpus: "1"}
		var needs []string
		for _, limit := range makeLimits() {
			text, from := c.StringFlag(limit.setting), "--"+limit.setting
			name := "ROOST_" + strings.ToUpper(limit.setting)
			if v, ok := d.Variable(&recipe, name); ok && strings.TrimSpace(v.Value) != "" {
				text, from = strings.TrimSpace(v.Value), name+" of the target "+recipe.Target
				if !v.IsExpanded && strings.Contains(text, "$") {
					return nil, frame.WithHint(frame.KindErrorf(roost.Invalid, "%s: %s is not expanded",
						document.PrintableText(from), document.PrintableText(text)), "set it with := instead of =")
				}
			}
			if text == "" {
				continue
			}
			source, err := limit.source(text)
			if err != nil {
				return nil, frame.KindErrorf(roost.Invalid, "%s: %v", document.PrintableText(from), err)
			}
			if limit.setting == "cpus" {
				one.cpus = source
			}
			one.settings += "  " + limit.setting + " = " + source + "\n"
			needs = append(needs, limit.setting+" "+text)
		}
		one.needs = strings.Join(needs, ", ")
		list[i] = one
	}
	return list, nil
}

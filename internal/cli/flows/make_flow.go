package flows

import (
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/makefile"
	"github.com/roost-batch/roost/internal/submit/dag"
)

// maxArgument is how long one argument of a program can be, with room to spare: Linux has
// 128 KiB.
const maxArgument = 96 << 10

// maxArguments bounds all arguments of one recipe. Linux has 2 MiB, with the environment.
const maxArguments = 1 << 20

// recipeFlow is the DAG file of some recipes.
type recipeFlow struct {
	strings.Builder
	name  string
	kinds map[string]string // by settings and number of arguments: descriptions in the text
	line  makeLine
}

// Open returns the DAG file.
func (f *recipeFlow) Open(name string) (io.ReadCloser, error) {
	if name != f.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return io.NopCloser(strings.NewReader(f.String())), nil
}

// Exists reports whether there is such a file.
func (f *recipeFlow) Exists(name string) bool { return name == f.name }

// nodeName is the name of a target's node as a word of a DAG file. Words of the language
// get an underscore.
func nodeName(target string) string {
	switch strings.ToUpper(target) {
	case "PARENT", "CHILD", "ALL_NODES":
		target += "_"
	}
	return quoteWord(target)
}

// quoteWord is a text as one word of a DAG file.
func quoteWord(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// quoteShell is a text as one word of a shell.
func quoteShell(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+=:,@%^") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// addRecipe writes the node of a recipe.
func (f *recipeFlow) addRecipe(d *makefile.Database, r *makeRecipe) error {
	flags := f.line.flags
	if cores, _ := strconv.ParseFloat(r.cpus, 64); cores >= 2 { // for the makes that it calls
		flags = append(flags[:len(flags):len(flags)], fmt.Sprintf("-j%d", int(cores)))
	}
	var parts []string
	size, part := 0, ""
	for _, word := range d.Arguments(&r.Recipe, flags, f.line.variables) {
		word = quoteShell(word)
		if part != "" && len(part)+len(word) >= maxArgument {
			parts, part = append(parts, part), ""
		}
		part = strings.TrimPrefix(part+" "+word, " ")
		size += len(word) + 1
	}
	parts = append(parts, part)
	if size > maxArguments || len(part) > maxArgument {
		return frame.WithHint(frame.KindErrorf(roost.Invalid, "%s has too many prerequisites that have to be "+
			"made", r.Target), "their names have more than 1 MiB: put "+
			"targets between them, each with some of the prerequisites")
	}
	fmt.Fprintf(f, "JOB %s %s\n", nodeName(r.Target), quoteWord(f.description(r.settings, len(parts))))
	for i, part := range parts {
		fmt.Fprintf(f, "VARS %s arguments%d=%s\n", nodeName(r.Target), i, quoteWord(part))
	}
	if len(r.After) > 0 {
		f.WriteString("PARENT")
		for _, name := range r.After {
			f.WriteString(" " + nodeName(name))
		}
		fmt.Fprintf(f, " CHILD %s\n", nodeName(r.Target))
	}
	return nil
}

// description returns the name of the job of recipes that need the same, and writes it
// once. The arguments of make are words of a shell, in one or more parts.
func (f *recipeFlow) description(settings string, parts int) string {
	key := fmt.Sprintf("%d %s", parts, settings)
	if name := f.kinds[key]; name != "" {
		return name
	}
	name := fmt.Sprintf("recipe %d", len(f.kinds))
	f.kinds[key] = name
	fmt.Fprintf(f, "SUBMIT-DESCRIPTION %s @=RECIPE\njob \"make\" {\n  command = [\"/bin/sh\", \"-c\", "+
		"\"eval \\\"exec make $*\\\"\", \"make\"", quoteWord(name))
	for i := range parts {
		fmt.Fprintf(f, ", var.arguments%d", i)
	}
	fmt.Fprintf(f, "]\n  directory = %s\n  transfer = \"never\"\n  getenv = true\n  join_output = true\n%s}\n",
		quoteHCL(f.line.directory), settings)
	for i := range parts {
		fmt.Fprintf(f, "variable \"arguments%d\" { type = string }\n", i)
	}
	f.WriteString("@RECIPE\n")
	return name
}

// submitRecipes submits the flow of the recipes, and returns its id.
func submitRecipes(c *frame.Invocation, d *makefile.Database, recipes []makeRecipe, l makeLine) (string, error) {
	f := &recipeFlow{name: "Makefile", kinds: map[string]string{}, line: l}
	if len(d.Makefiles) > 0 {
		f.name = d.Makefiles[0]
	}
	for i := range recipes {
		if err := f.addRecipe(d, &recipes[i]); err != nil {
			return "", err
		}
	}
	flow, diags := dag.Parse(f, []string{f.name}, dag.ParseOptions{AnyNodeName: true, SkipFileTests: true})
	if diags.HasErrors() {
		printDiagnostics(c, diags)
		return "", frame.ExitError(makeExit)
	}
	opts, err := c.SubmitOptions()
	if err != nil {
		return "", err
	}
	opts.Environ, opts.Dir = makeEnvironment(c), l.directory
	p := flow.Plan(l.directory)
	p.Environment, p.StopsAtFailure = opts.Environ, !l.keepsOn
	p.Limits.Jobs = int(min(c.Flags.Uint("jobs"), roost.MaxTasks))
	if t := d.Targets[".NOTPARALLEL"]; t != nil && t.IsTarget {
		p.Limits.Jobs = 1
	}
	if err := compileJobs(c, flow, p, opts, &flowOptions{}); err != nil {
		return "", err
	}
	o := flowOptions{name: c.StringFlag("name")}
	if o.name == "" {
		o.name = strings.Join(append([]string{"make"}, l.goals...), " ")
		o.name = strings.ToValidUTF8(o.name[:min(len(o.name), 100)], "")
	}
	reply, err := sendFlow(c, p, o)
	if err != nil {
		return "", err
	}
	return reply.GetIds()[0], nil
}

package submit

import (
	"fmt"
	"path"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/roost-batch/roost"
)

// maxChecked bounds how many files of one setting are looked at when each task names its own.
const maxChecked = 2000

// input is a file that goes to where the task runs, and what it is called there.
type input struct {
	from    text // absolute
	name    text // relative, below the task's directory
	program bool
}

// similar offers a file beside the missing one whose name is like its.
func (b *builder) similar(where string) string {
	beside, err := b.p.opts.Files.Glob(path.Join(path.Dir(where), "*"))
	if err != nil || len(beside) > 10_000 {
		return ""
	}
	names := make([]string, len(beside))
	for i, f := range beside {
		names[i] = path.Base(f)
	}
	if near := nearest(path.Base(where), names); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// readTransfer reads transfer, inputs and outputs.
func (b *builder) readTransfer() {
	mode := b.p.opts.Defaults.Transfer
	const cure = "Write \"auto\" (files are sent to machines that do not see yours), \"always\" or \"never\"."
	if s, at, ok := b.sameText("transfer", cure); ok {
		if mode = s; mode != "auto" && mode != "always" && mode != "never" {
			b.fail(at, fmt.Sprintf("%q is not a way to transfer files", shorten(s)), cure+offer(s, []string{"auto", "always", "never"}))
		}
	}
	b.ad.SetString(roost.AttrTransfer, mode)
	if a, ok := b.attr("inputs", b.roots()...); ok {
		b.readInputs(a.Expr)
	}
	seen := map[string]bool{}
	list := make([]string, 0, len(b.inputs))
	for _, in := range b.inputs {
		entry := in.from.ad() + " => " + in.name.ad()
		if name := in.name.ad(); seen[name] {
			if !in.program {
				b.fail(in.name.at, fmt.Sprintf("two inputs are called %q", shorten(name)), "Each needs a name of its own where the task runs. Write inputs as a map from names to files: inputs = { \"a.csv\" = \"/data/1/x.csv\" }.")
			}
			continue
		}
		seen[in.name.ad()] = true
		list = append(list, entry)
	}
	if len(list) > 0 {
		b.ad.SetStrings(roost.AttrTransferIn, list)
	}
	b.readOutputs()
}

// readInputs reads a list of paths, or a map from names to paths.
func (b *builder) readInputs(expr hclsyntax.Expression) {
	if b.isMap(expr) {
		named, ok := b.textMap(expr, "inputs")
		if !ok {
			return
		}
		for _, name := range sortedKeys(named) {
			t := named[name]
			if !local(name) {
				b.fail(t.at, fmt.Sprintf("%q cannot be the name of an input", shorten(name)), "It is what the file is called below the task's directory: a relative path without \"..\".")
				continue
			}
			if b.inputThere(t) {
				b.addInput(b.below(t), fixedText(name, t.at))
			}
		}
		return
	}
	list, ok := b.texts(expr, "inputs")
	if !ok {
		return
	}
	for _, t := range list {
		b.listInput(t)
	}
}

func (b *builder) isMap(expr hclsyntax.Expression) bool {
	switch e := expr.(type) {
	case *hclsyntax.ObjectConsExpr:
		return true
	case *hclsyntax.TupleConsExpr:
		return false
	case *hclsyntax.ForExpr:
		return e.KeyExpr != nil
	case *hclsyntax.FunctionCallExpr:
		return e.Name == "merge"
	}
	if b.p.perTask(expr) {
		return false
	}
	v, ok := b.p.eval(expr, b.p.root)
	return ok && !v.IsNull() && (v.Type().IsMapType() || v.Type().IsObjectType())
}

// listInput adds one path, or all that a pattern matches. A relative one keeps its name, so that the task finds it under the
// same name whether it runs in place or elsewhere; any other goes by its last element.
func (b *builder) listInput(t text) {
	name, fixed := t.fixed()
	if !fixed {
		if b.inputThere(t) {
			b.addInput(b.below(t), b.nameOf(t))
		}
		return
	}
	iwd, known := b.iwd.fixed()
	if strings.ContainsAny(name, "*?[") && known && b.p.opts.Files != nil {
		found, err := b.p.opts.Files.Glob(absolute(name, iwd, b.p.opts.Home))
		if err != nil || len(found) == 0 {
			b.p.report(missing(&t.at, fmt.Sprintf("no file matches %q", shorten(name)), fmt.Sprintf("Patterns are looked up in %s, when the job is submitted. Check the pattern, or remove it.", iwd)))
			return
		}
		for _, f := range found {
			keep := path.Base(f)
			if !path.IsAbs(name) && !strings.HasPrefix(name, "~") && strings.HasPrefix(f, strings.TrimSuffix(iwd, "/")+"/") {
				keep = f[len(strings.TrimSuffix(iwd, "/"))+1:]
			}
			b.addInput(fixedText(f, t.at), fixedText(keep, t.at))
		}
		return
	}
	if b.inputThere(t) {
		b.addInput(b.below(t), b.nameOf(t))
	}
}

func (b *builder) addInput(from, name text) {
	if strings.Contains(from.ad(), " => ") || strings.Contains(name.ad(), " => ") {
		b.fail(from.at, "an input cannot have \" => \" in its name", "It divides a file from its name where the task runs. Rename the file.")
		return
	}
	b.inputs = append(b.inputs, input{from: from, name: name})
}

// nameOf is what an input of a list is called where the task runs.
func (b *builder) nameOf(t text) text {
	if s, fixed := t.fixed(); fixed {
		if s = path.Clean(s); local(s) && !strings.HasPrefix(s, "~") {
			return fixedText(s, t.at)
		}
		return fixedText(path.Base(s), t.at)
	}
	first := t.pieces[0]
	if first.column == "" && !strings.HasPrefix(first.fixed, "/") && !strings.HasPrefix(first.fixed, "~") && !strings.Contains(first.fixed, "..") {
		return t
	}
	values := make([]string, b.tasks.count)
	same := true
	for i := range values {
		s := b.textOfTask(t, i)
		if values[i] = path.Clean(s); !local(values[i]) || strings.HasPrefix(s, "~") {
			values[i] = path.Base(s)
		}
		same = same && values[i] == s
	}
	if same {
		return t
	}
	return text{[]piece{{column: b.addColumn("input", "", values)}}, t.at}
}

// local reports whether a path stays below the directory that it starts from.
func local(name string) bool {
	return name != "" && name != ".." && !path.IsAbs(name) && !strings.HasPrefix(path.Clean(name), "../") && path.Clean(name) != ".." && path.Clean(name) != "."
}

// inputThere checks that an input can be read, for every task.
func (b *builder) inputThere(t text) bool {
	if s, fixed := t.fixed(); fixed && strings.TrimSpace(s) == "" {
		b.fail(t.at, "an input is empty", "Name a file or a directory, or remove it.")
		return false
	}
	return b.eachFile(t, "input", false)
}

// eachFile checks the files that a text names, one for each task.
func (b *builder) eachFile(t text, what string, exec bool) bool {
	if b.refuseNumber(t, "an "+what) {
		return false
	}
	if b.p.opts.Files == nil {
		return true
	}
	from := b.below(t)
	n := min(b.tasks.count, maxChecked)
	if _, fixed := from.fixed(); fixed {
		n = 1
	}
	seen := map[string]bool{}
	for i := range n {
		where := path.Clean(b.textOfTask(from, i))
		if exec && !strings.Contains(b.textOfTask(t, i), "/") {
			if found := b.onPath(b.textOfTask(t, i)); found != "" {
				where = found
			}
		}
		if seen[where] {
			continue
		}
		seen[where] = true
		if d := b.fileProblem(where, what, t.at, exec); d != nil {
			if n > 1 {
				d.Detail += fmt.Sprintf(" It is that of task %d.", i)
			}
			b.p.report(d)
			return false
		}
	}
	return true
}

// refuseNumber reports the job's number in the name of a file that has to be there before the job has one.
func (b *builder) refuseNumber(t text, what string) bool {
	if !t.numbered() {
		return false
	}
	b.fail(t.at, "task.job cannot stand in the name of "+what, "The job gets its number when it is submitted, and this has to be there before. It can stand in stdout, stderr, arguments, environment and script.")
	return true
}

func (b *builder) fileProblem(where, what string, at hcl.Range, exec bool) *hcl.Diagnostic {
	if _, err := b.p.opts.Files.Stat(where); err != nil {
		return missing(&at, fmt.Sprintf("the %s %q is not there", what, shorten(where)), fmt.Sprintf("%v. Check the name%s, or make the file before the job is submitted.", sentence(cause(err)), b.similar(where)))
	}
	if err := b.p.opts.Files.Access(where, exec); err != nil {
		if exec {
			return missing(&at, fmt.Sprintf("%q cannot be executed", shorten(where)), notExecutable(where))
		}
		return missing(&at, fmt.Sprintf("the %s %q cannot be read", what, shorten(where)), fmt.Sprintf("%v. Give yourself the right to read it: chmod u+r, or ask whom it belongs to.", sentence(cause(err))))
	}
	return nil
}

// sentence begins an error's words with a capital.
func sentence(err error) string {
	s := err.Error()
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// readOutputs reads the names and patterns of what comes back: a list, or a map to the names that it gets here.
func (b *builder) readOutputs() {
	if a, ok := b.attr("outputs", b.roots()...); ok && b.isMap(a.Expr) {
		b.renameOutputs(a)
		return
	}
	list, ok := b.textsOf("outputs")
	if ok && len(list) > 0 && b.outputsLocal(list) {
		b.ad.SetStrings(roost.AttrTransferOut, adTexts(list))
	}
}

// renameOutputs reads a map of outputs. A task that runs where its files are would leave them as they are called there, so it does not.
func (b *builder) renameOutputs(a *hclsyntax.Attribute) {
	named, ok := b.textMap(a.Expr, "outputs")
	if !ok || len(named) == 0 {
		return
	}
	if mode, _ := b.ad.Str(roost.AttrTransfer); mode != "always" {
		if said := b.body.Attributes["transfer"]; said != nil {
			b.fail(said.NameRange, "outputs that get another name need transfer = \"always\"", "On a machine that sees your files the task would leave them as it calls them.")
			return
		}
		b.ad.SetString(roost.AttrTransfer, "always")
	}
	list := make([]string, 0, len(named))
	for _, name := range sortedKeys(named) {
		from, to := fixedText(name, named[name].at), named[name]
		if !b.outputsLocal([]text{from, to}) {
			return
		}
		if strings.Contains(from.ad(), " => ") || strings.Contains(to.ad(), " => ") {
			b.fail(to.at, "an output cannot have \" => \" in its name", "It divides the file from its name here. Rename the file.")
			return
		}
		list = append(list, from.ad()+" => "+to.ad())
	}
	b.ad.SetStrings(roost.AttrTransferOut, list)
}

// outputsLocal reports those that are not below the task's directory.
func (b *builder) outputsLocal(list []text) bool {
	before := len(b.p.diags)
	for _, t := range list {
		first, fixed := t.fixed()
		if !fixed {
			first = t.pieces[0].fixed
			if t.pieces[0].column != "" || first == "" {
				first = "x"
			}
		}
		switch {
		case fixed && first == "":
			b.fail(t.at, "an output is empty", "Name a file that the task writes, or remove it.")
		case path.IsAbs(first) || strings.HasPrefix(first, "~"):
			b.fail(t.at, fmt.Sprintf("the output %q is not below the task's directory", shorten(first)), "Outputs are relative to the directory that the task runs in, and come back to the same place below the job's directory. Write it "+
				"without the directory, and set directory = \"…\" to where it is to go.")
		case strings.HasPrefix(path.Clean(first), ".."):
			b.fail(t.at, fmt.Sprintf("the output %q is outside of the task's directory", shorten(first)), "A path with \"..\" cannot be brought back. Let the task write below its own directory, and set directory = \"…\" to where its outputs are to go.")
		}
	}
	return len(b.p.diags) == before
}

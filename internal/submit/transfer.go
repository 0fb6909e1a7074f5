package submit

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// maxCheckedInputs bounds the files of a setting that are checked if each task names its
// own.
const maxCheckedInputs = 2000

// inputFile is a file that is sent to the task's machine, and its name there.
type inputFile struct {
	sourcePath taskText // absolute
	name       taskText // relative, below the task's directory
	program    bool
}

// similarFile suggests an existing file with a name similar to that of a missing one.
func (b transferReader) similarFile(where string) string {
	beside, err := b.parser.options.Files.Glob(path.Join(path.Dir(where), "*"))
	if err != nil || len(beside) > 10_000 {
		return ""
	}
	names := make([]string, len(beside))
	for i, f := range beside {
		names[i] = path.Base(f)
	}
	if near := nearestName(path.Base(where), names); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// readTransfer reads transfer, inputs and outputs.
func (b transferReader) readTransfer() {
	mode := b.parser.options.Defaults.Transfer
	const hint = "Write \"auto\" (files are sent to machines that do not see yours), \"always\", \"never\" or " +
		"\"store\" (the checkpoint server has the files of a job in the queue of the cell)."
	modes := []string{"auto", "always", "never", jobad.TransferStore}
	if s, at, ok := b.constantText("transfer", hint); ok {
		if mode = s; !slices.Contains(modes, mode) {
			b.reportProblem(at, fmt.Sprintf("%q is not a way to transfer files", truncateText(s)),
				hint+nearestHint(s, modes))
		}
	}
	b.ad.SetString(roost.AttrTransfer, mode)
	if a, ok := b.attribute("inputs", b.taskReader().taskRoots()...); ok {
		b.readInputs(a.Expr)
	}
	seen := map[string]string{}   // entries by the name where the task runs
	programs := map[string]bool{} // names of programs, which may be listed as inputs, too
	list := make([]string, 0, len(b.inputs))
	for _, in := range b.inputs {
		entry := in.sourcePath.adText() + " => " + in.name.adText()
		if name := in.name.adText(); seen[name] != "" {
			if !in.program && (seen[name] != entry || !programs[name]) {
				b.reportProblem(in.name.sourceRange, fmt.Sprintf("two inputs are called %q", truncateText(name)),
					"Each needs a name of its own where the task runs. Write inputs as a map from names to files: "+
						"inputs = { \"a.csv\" = \"/data/1/x.csv\" }.")
			}
			continue
		}
		seen[in.name.adText()], programs[in.name.adText()] = entry, in.program
		list = append(list, entry)
	}
	if len(list) > 0 {
		b.ad.SetStrings(roost.AttrTransferIn, list)
	}
	b.readOutputs()
	b.requireOwnDirectory()
}

// readInputs reads a list of paths, or a map from names to paths.
func (b transferReader) readInputs(expr hclsyntax.Expression) {
	if b.isMapExpr(expr) {
		named, ok := b.programReader().textMap(expr, "inputs")
		if !ok {
			return
		}
		for _, name := range sortedKeys(named) {
			t := named[name]
			if !isLocalPath(name) {
				b.reportProblem(t.sourceRange, fmt.Sprintf("%q cannot be the name of an input", truncateText(name)),
					"It is what the file is called below the task's directory: a relative path without \"..\".")
				continue
			}
			if b.isObject(t) {
				b.addObjectInput(t, fixedText(path.Clean(name), t.sourceRange))
			} else if b.checkInput(t) {
				b.addInput(b.programReader().absoluteFromJob(t), fixedText(name, t.sourceRange))
			}
		}
		return
	}
	list, ok := b.taskReader().readTextList(expr, "inputs")
	if !ok {
		return
	}
	for _, t := range list {
		b.listInput(t)
	}
}

func (b transferReader) isMapExpr(expr hclsyntax.Expression) bool {
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
	if b.parser.isPerTask(expr) {
		return false
	}
	v, ok := b.parser.evaluate(expr, b.parser.root)
	return ok && !v.IsNull() && (v.Type().IsMapType() || v.Type().IsObjectType())
}

// listInput adds one path, or all that a pattern matches. A relative path keeps its name,
// so the task finds it under the same name in both ways of running; any other gets its
// last element as name.
func (b transferReader) listInput(t taskText) {
	if b.isObject(t) {
		b.addObjectInput(t, b.objectInputName(t))
		return
	}
	name, fixed := t.fixedText()
	if !fixed {
		if b.checkInput(t) {
			b.addInput(b.programReader().absoluteFromJob(t), b.inputName(t))
		}
		return
	}
	iwd, known := b.workingDirectory.fixedText()
	if strings.ContainsAny(name, "*?[") && known && b.parser.options.Files != nil {
		found, err := b.parser.options.Files.Glob(absolutePath(name, iwd, b.parser.options.Home))
		if err != nil || len(found) == 0 {
			b.parser.report(missingFileDiagnostic(&t.sourceRange, fmt.Sprintf("no file matches %q", truncateText(name)),
				fmt.Sprintf("Patterns are looked up in %s, when the job is submitted. Check the pattern, or remove it.",
					iwd)))
			return
		}
		for _, f := range found {
			name := path.Base(f)
			if !path.IsAbs(name) && !strings.HasPrefix(name, "~") &&
				strings.HasPrefix(f, strings.TrimSuffix(iwd, "/")+"/") {
				name = f[len(strings.TrimSuffix(iwd, "/"))+1:]
			}
			b.addInput(fixedText(f, t.sourceRange), fixedText(name, t.sourceRange))
		}
		return
	}
	if b.checkInput(t) {
		b.addInput(b.programReader().absoluteFromJob(t), b.inputName(t))
	}
}

func (b transferReader) addInput(from, name taskText) {
	if strings.Contains(from.adText(), " => ") || strings.Contains(name.adText(), " => ") {
		b.reportProblem(from.sourceRange, "an input cannot have \" => \" in its name",
			"It divides a file from its name where the task runs. Rename the file.")
		return
	}
	b.inputs = append(b.inputs, inputFile{sourcePath: from, name: name})
}

// inputName returns the name of a listed input on the task's machine.
func (b transferReader) inputName(t taskText) taskText {
	if s, fixed := t.fixedText(); fixed {
		if s = path.Clean(s); isLocalPath(s) && !strings.HasPrefix(s, "~") {
			return fixedText(s, t.sourceRange)
		}
		return fixedText(path.Base(s), t.sourceRange)
	}
	first := t.pieces[0]
	if first.column == "" && !strings.HasPrefix(first.fixed, "/") && !strings.HasPrefix(first.fixed, "~") &&
		!strings.Contains(first.fixed, "..") {
		return t
	}
	values := make([]string, b.tasks.count)
	same := true
	for i := range values {
		s := b.taskReader().taskValue(t, i)
		if values[i] = path.Clean(s); !isLocalPath(values[i]) || strings.HasPrefix(s, "~") {
			values[i] = path.Base(s)
		}
		same = same && values[i] == s
	}
	if same {
		return t
	}
	return taskText{[]textPiece{{column: b.taskReader().addColumn("input", "", values)}}, t.sourceRange}
}

// isLocalPath reports whether a path stays below the directory that it starts from.
func isLocalPath(name string) bool {
	return name != "" && name != ".." && !path.IsAbs(name) && !strings.HasPrefix(path.Clean(name), "../") &&
		path.Clean(name) != ".." && path.Clean(name) != "."
}

// checkInput checks that an input can be read, for every task.
func (b transferReader) checkInput(t taskText) bool {
	if s, fixed := t.fixedText(); fixed && strings.TrimSpace(s) == "" {
		b.reportProblem(t.sourceRange, "an input is empty", "Name a file or a directory, or remove it.")
		return false
	}
	return b.checkEachFile(t, "input", false)
}

// checkEachFile checks the files that a text names, one for each task.
func (b transferReader) checkEachFile(t taskText, what string, exec bool) bool {
	if b.refuseJobNumber(t, "an "+what) {
		return false
	}
	if b.parser.options.Files == nil || b.parser.options.LateFiles {
		return true
	}
	from := b.programReader().absoluteFromJob(t)
	n := min(b.tasks.count, maxCheckedInputs)
	if _, fixed := from.fixedText(); fixed {
		n = 1
	}
	seen := map[string]bool{}
	for i := range n {
		where := path.Clean(b.taskReader().taskValue(from, i))
		if exec && !strings.Contains(b.taskReader().taskValue(t, i), "/") {
			if found := b.programReader().findOnPath(b.taskReader().taskValue(t, i)); found != "" {
				where = found
			}
		}
		if seen[where] {
			continue
		}
		seen[where] = true
		if d := b.fileDiagnostic(where, what, t.sourceRange, exec); d != nil {
			if n > 1 {
				d.Detail += fmt.Sprintf(" It is that of %s.", b.taskReader().label(i))
			}
			b.parser.report(d)
			return false
		}
	}
	return true
}

// refuseJobNumber reports the job's number in the name of a file that must exist before
// the job is submitted.
func (b transferReader) refuseJobNumber(t taskText, what string) bool {
	if !t.hasJobNumber() {
		return false
	}
	b.reportProblem(t.sourceRange, "task.job cannot be part of the name of "+what,
		"The job gets its number when it is submitted, and this has to be there before. It can be used in stdout, "+
			"stderr, arguments, environment and script.")
	return true
}

func (b transferReader) fileDiagnostic(where, what string, at hcl.Range, exec bool) *hcl.Diagnostic {
	if _, err := b.parser.options.Files.Stat(where); err != nil {
		return missingFileDiagnostic(&at, fmt.Sprintf("the %s %q is not there", what, truncateText(where)),
			fmt.Sprintf("%v. Check the name%s, or make the file before the job is submitted.",
				capitalized(innermostCause(err)), b.similarFile(where)))
	}
	if err := b.parser.options.Files.Access(where, exec); err != nil {
		if exec {
			return missingFileDiagnostic(&at, fmt.Sprintf("%q cannot be executed", truncateText(where)),
				notExecutableError(where))
		}
		return missingFileDiagnostic(&at, fmt.Sprintf("the %s %q cannot be read", what, truncateText(where)),
			fmt.Sprintf("%v. Give yourself the right to read it: chmod u+r, or ask its owner.",
				capitalized(innermostCause(err))))
	}
	return nil
}

// capitalized returns an error's text with a capital first letter.
func capitalized(err error) string {
	s := err.Error()
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// readOutputs reads which files are output. They are a list of names and patterns, or a
// map to the names at the submit side.
func (b transferReader) readOutputs() {
	if a, ok := b.attribute("outputs", b.taskReader().taskRoots()...); ok && b.isMapExpr(a.Expr) {
		b.renameOutputs(a)
		return
	}
	list, ok := b.taskReader().textListSetting("outputs")
	if ok && len(list) > 0 && b.checkOutputsLocal(list) {
		b.ad.SetStrings(roost.AttrTransferOut, adTextList(list))
	}
}

// renameOutputs reads a map of outputs. It requires a transfer, since a task that runs in
// place would not rename them.
func (b transferReader) renameOutputs(a *hclsyntax.Attribute) {
	named, ok := b.programReader().textMap(a.Expr, "outputs")
	if !ok || len(named) == 0 {
		return
	}
	if mode, _ := b.ad.Str(roost.AttrTransfer); mode != "always" && mode != jobad.TransferStore {
		if isGiven := b.body.Attributes["transfer"]; isGiven != nil {
			b.reportProblem(isGiven.NameRange, "outputs that get another name need transfer = \"always\"",
				"On a machine that shares your files the task would leave them under its own names.")
			return
		}
		b.ad.SetString(roost.AttrTransfer, "always")
	}
	list := make([]string, 0, len(named))
	for _, name := range sortedKeys(named) {
		from, to := fixedText(name, named[name].sourceRange), named[name]
		checked := []taskText{from, to}
		if b.isObject(to) {
			checked = checked[:1]
			if !b.checkObject(to) {
				return
			}
		}
		if !b.checkOutputsLocal(checked) {
			return
		}
		if strings.Contains(from.adText(), " => ") || strings.Contains(to.adText(), " => ") {
			b.reportProblem(to.sourceRange, "an output cannot have \" => \" in its name",
				"It divides the file from its name here. Rename the file.")
			return
		}
		list = append(list, from.adText()+" => "+to.adText())
	}
	b.ad.SetStrings(roost.AttrTransferOut, list)
}

// checkOutputsLocal reports outputs that are not below the task's directory.
func (b transferReader) checkOutputsLocal(list []taskText) bool {
	before := len(b.parser.diags)
	for _, t := range list {
		first, fixed := t.fixedText()
		if !fixed {
			first = t.pieces[0].fixed
			if t.pieces[0].column != "" || first == "" {
				first = "x"
			}
		}
		switch {
		case b.isObject(t):
			b.reportProblem(t.sourceRange, "an object is no file of the task", "Write outputs as a map from files of "+
				"the task to objects: outputs = { \"result.csv\" = \"s3://results/run7.csv\" }.")
		case fixed && first == "":
			b.reportProblem(t.sourceRange, "an output is empty", "Name a file that the task writes, or remove it.")
		case path.IsAbs(first) || strings.HasPrefix(first, "~"):
			b.reportProblem(t.sourceRange, fmt.Sprintf("the output %q is not below the task's directory",
				truncateText(first)), "Outputs are relative to the directory that the task runs in, and come back "+
				"to the same place below the job's directory. Write it "+
				"without the directory, and set directory = \"…\" to where it is to go.")
		case strings.HasPrefix(path.Clean(first), ".."):
			b.reportProblem(t.sourceRange, fmt.Sprintf("the output %q is outside of the task's directory",
				truncateText(first)), "A path with \"..\" cannot be brought back. Let the task write below its own "+
				"directory, and set directory = \"…\" to where its outputs are to go.")
		}
	}
	return len(b.parser.diags) == before
}

const objectHint = "Write it as s3://BUCKET/KEY, or as s3://BUCKET/PREFIX/ for all objects whose keys begin so."

// isObject reports whether a text names an object of an object store.
func (b transferReader) isObject(t taskText) bool {
	if first := t.pieces[0]; first.column == "" {
		return jobad.IsObjectURL(first.fixed)
	}
	return b.tasks.count > 0 && jobad.IsObjectURL(b.taskReader().taskValue(t, 0))
}

// checkObject checks the names of objects, for every task. Nobody asks the object store:
// the keys for that are at the submit node.
func (b transferReader) checkObject(t taskText) bool {
	n := min(b.tasks.count, maxCheckedInputs)
	if _, fixed := t.fixedText(); fixed {
		n = 1
	}
	for i := range n {
		u, err := jobad.ParseObjectURL(b.taskReader().taskValue(t, i))
		if err != nil {
			text := strings.Replace(err.Error(), ": "+roost.Invalid.Error(), "", 1)
			if n > 1 {
				text += " (" + b.taskReader().label(i) + ")"
			}
			b.reportProblem(t.sourceRange, text, objectHint)
			return false
		}
		if u.Key == "" {
			b.reportProblem(t.sourceRange, fmt.Sprintf("%q is a whole bucket", truncateText(u.String())), objectHint)
			return false
		}
	}
	return true
}

// addObjectInput adds an object that is fetched into the task's directory.
func (b transferReader) addObjectInput(t, name taskText) {
	if !b.checkObject(t) {
		return
	}
	b.inputs = append(b.inputs, inputFile{sourcePath: t, name: name})
}

// objectInputName returns the name of a listed object on the task's machine, which is the
// last element of its key.
func (b transferReader) objectInputName(t taskText) taskText {
	if s, fixed := t.fixedText(); fixed {
		return fixedText(path.Base(s), t.sourceRange)
	}
	values := make([]string, b.tasks.count)
	for i := range values {
		values[i] = path.Base(b.taskReader().taskValue(t, i))
	}
	return taskText{[]textPiece{{column: b.taskReader().addColumn("input", "", values)}}, t.sourceRange}
}

// requireOwnDirectory has a job with objects run in a directory of its own. Objects are
// not moved to and from the directory of the user.
func (b transferReader) requireOwnDirectory() {
	some := false
	for _, attribute := range []string{roost.AttrTransferIn, roost.AttrTransferOut} {
		list, _ := b.ad.Strings(attribute)
		for _, entry := range list {
			from, to := jobad.SplitTransfer(entry)
			some = some || jobad.IsObjectURL(from) || jobad.IsObjectURL(to)
		}
	}
	if some {
		b.setOwnDirectory("objects of an object store", "They are moved between the object store and a directory of "+
			"the task's own.")
	}
}

// setOwnDirectory sets transfer to "always", or reports that the job says otherwise.
func (b transferReader) setOwnDirectory(what, why string) bool {
	if mode, _ := b.ad.Str(roost.AttrTransfer); mode == "always" {
		return true
	}
	if given := b.body.Attributes["transfer"]; given != nil {
		b.reportProblem(given.NameRange, what+" need transfer = \"always\"", why)
		return false
	}
	b.ad.SetString(roost.AttrTransfer, "always")
	return true
}

package submit

import (
	"fmt"
	"path"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
)

// readStreams reads stdin, stdout, stderr and join_output.
func (b transferReader) readStreams() {
	if a, ok := b.attribute("stdin", b.taskReader().taskRoots()...); ok {
		t, ok := b.taskReader().readText(a.Expr, "stdin")
		if ok && b.isObject(t) {
			b.reportProblem(t.sourceRange, "stdin cannot be an object", "List the object in inputs, and let the "+
				"program read the file.")
		} else if ok && b.checkInput(t) {
			b.ad.SetString(roost.AttrIn, b.programReader().absoluteFromJob(t).adText())
		}
	}
	out := b.readOutput("stdout", roost.AttrOut)
	err := b.readOutput("stderr", roost.AttrErr)
	join, _ := b.constantBool("join_output")
	if join && err {
		b.reportProblem(b.body.Attributes["stderr"].NameRange, "stderr and join_output cannot both be set",
			"With join_output = true the standard error goes where stdout goes. Remove one of the two.")
	}
	if out && err && b.ad != nil {
		o, _ := b.ad.Str(roost.AttrOut)
		if e, _ := b.ad.Str(roost.AttrErr); e == o && e != "/dev/null" && e != "" {
			join = true // two descriptors of one file would overwrite each other
			b.ad.Delete(roost.AttrErr)
		}
	}
	b.ad.SetBool(roost.AttrJoinOutput, join)
	if retain, ok := b.constantBool("empty_output"); ok {
		b.ad.SetBool(roost.AttrKeepEmptyFiles, retain)
	}
	b.readRemoval(join)
	b.readUserLog()
}

// readUserLog reads user_log, a file that all tasks of the job share.
func (b transferReader) readUserLog() {
	a, ok := b.attribute("user_log", b.taskReader().taskRoots()...)
	if !ok {
		return
	}
	t, ok := b.taskReader().readText(a.Expr, "user_log")
	if !ok {
		return
	}
	file := b.programReader().absoluteFromJob(t)
	where, fixed := file.fixedText()
	switch {
	case !file.isSameForAll():
		b.reportProblem(t.sourceRange, "user_log differs between tasks",
			"A job has one user log, in which each record names its task. Leave the task out of the name.")
	case fixed && (where == "" || where == "/dev/null"):
	case fixed && b.parser.options.Files != nil && !b.parser.options.LateFiles &&
		!b.checkParentExists(where, "user_log", t.sourceRange):
	default:
		b.ad.SetString(roost.AttrUserLog, file.adText())
	}
}

// streamSettings are the values of remove_output.
var streamSettings = []struct{ name, letter string }{{"stdout", "o"}, {"stderr", "e"}}

// readRemoval reads which output files are removed after success.
func (b transferReader) readRemoval(joined bool) {
	const hint = "Write a list of stdout and stderr: remove_output = [\"stderr\"]."
	list, at, ok := b.readChoices("remove_output", hint, quotedNames(streamSettings))
	letters := ""
	for _, s := range streamSettings {
		if !ok || !containsName(list, s.name) {
			continue
		}
		if b.body.Attributes[s.name] == nil || joined && s.name == "stderr" {
			b.reportProblem(at, "remove_output names a file that there is not",
				fmt.Sprintf("The job has no %s of its own. Say where it goes, or remove it from the list.", s.name))
			return
		}
		letters += s.letter
	}
	if letters != "" {
		b.ad.SetString(roost.AttrRemoveOutput, letters)
	}
}

func (b transferReader) readOutput(name, attr string) bool {
	a, ok := b.attribute(name, b.taskReader().taskRoots()...)
	if !ok {
		return false
	}
	t, ok := b.taskReader().readText(a.Expr, name)
	if !ok {
		return false
	}
	s, fixed := t.fixedText()
	if fixed && s == "" {
		return false
	}
	abs := b.programReader().absoluteFromJob(t)
	where, known := abs.fixedText()
	switch {
	case b.isObject(t):
		b.reportProblem(t.sourceRange, name+" cannot be an object",
			"It grows while the task runs, and an object is stored as a whole. Let the task write a file, and list "+
				"it: outputs = { \"log.txt\" = \"s3://results/log.txt\" }.")
		return false
	case fixed && strings.HasSuffix(s, "/"):
		b.reportProblem(t.sourceRange, name+" is a directory",
			fmt.Sprintf("It has to be a file: %s = \"%s%s.${task.index}\".", name, s, name))
		return false
	case abs.isSameForAll() && b.tasks.perJob() > 1 && where != "/dev/null" && !b.isMPIGang():
		ext := path.Ext(s)
		if !fixed {
			s, ext = name+".${task.job}", ""
		}
		b.reportProblem(t.sourceRange, "all tasks would write "+name+" to the same file",
			fmt.Sprintf("Give each task its own: %s = \"%s.${task.index}%s\".", name, strings.TrimSuffix(s, ext), ext))
		return false
	case known && b.parser.options.Files != nil && !b.parser.options.LateFiles && where != "/dev/null":
		if !b.checkParentExists(where, name, t.sourceRange) {
			return false
		}
	}
	b.ad.SetString(attr, abs.adText())
	return true
}

// isMPIGang reports whether only the first task runs the program.
func (b transferReader) isMPIGang() bool {
	a := b.body.Attributes["led"]
	if a == nil || !b.parser.checkNames(a.Expr, nil) {
		return false
	}
	v, ok := b.parser.evaluate(a.Expr, b.parser.root)
	return ok && !v.IsNull() && v.Type() == cty.Bool && v.True()
}

func (b transferReader) checkParentExists(where, name string, at hcl.Range) bool {
	if info, err := b.parser.options.Files.Stat(where); err == nil && info.IsDir() {
		b.reportProblem(at, fmt.Sprintf("%s: %q is a directory", name, truncateText(where)),
			"It has to be a file. Add a name to it.")
		return false
	}
	parent := path.Dir(where)
	if iwd, _ := b.workingDirectory.fixedText(); parent == iwd {
		return true // was checked, or is the submit directory
	}
	if info, err := b.parser.options.Files.Stat(parent); err != nil || !info.IsDir() {
		b.parser.report(missingFileDiagnostic(&at, fmt.Sprintf("the directory of %s is not there", name),
			fmt.Sprintf("There is no directory %s. Make it first: mkdir -p %s.", parent, parent)))
		return false
	}
	return true
}

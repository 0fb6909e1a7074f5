package submit

import (
	"fmt"
	"path"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
)

// readProgram reads what is run: one of executable, command and script.
func (b programReader) readProgram() {
	var set []*hclsyntax.Attribute
	for _, name := range []string{"executable", "command", "script"} {
		if a := b.body.Attributes[name]; a != nil {
			set = append(set, a)
		}
	}
	if len(set) == 0 && hasImage(b.body) && b.body.Attributes["image_entrypoint"] != nil {
		return // what the image says, when the submission has found it
	}
	if len(set) == 0 {
		b.reportProblem(b.block.DefRange(), "this job has nothing to run",
			"Say what it runs with one of\n\n  command    = [\"python3\", \"train.py\", \"--seed=${task.index}\"]\n  "+
				"executable = \"./simulate\"\n  script     = <<-END\n    echo hello\n  END\n")
		return
	}
	if len(set) > 1 {
		b.reportProblem(set[1].NameRange, fmt.Sprintf("%s and %s cannot both be set", set[0].Name, set[1].Name),
			"A job runs one thing: an executable with arguments, a command (both in one list), or a script. Remove "+
				"one of the two.")
		return
	}
	if shell := b.body.Attributes["shell"]; shell != nil && set[0].Name != "script" {
		b.reportProblem(shell.NameRange, "shell is only for a script",
			fmt.Sprintf("What this job runs is its %s, without a shell. For a shell's line write script = \"…\".",
				set[0].Name))
	}
	arguments, _ := b.taskReader().textListSetting("arguments")
	roots := b.taskReader().taskRoots()
	if set[0].Name == "command" {
		roots = append(roots, "port")
	}
	a, ok := b.attribute(set[0].Name, roots...)
	if !ok {
		return
	}
	switch a.Name {
	case "executable":
		if t, ok := b.taskReader().readText(a.Expr, "executable"); ok {
			b.setProgram(t, arguments)
		}
	case "command":
		if other := b.body.Attributes["arguments"]; other != nil {
			b.reportProblem(other.NameRange, "command and arguments cannot both be set",
				"command holds the program and its arguments in one list; arguments belong to executable and "+
					"to script.")
		}
		list, ok := b.taskReader().readTextList(a.Expr, "command")
		if ok && len(list) == 0 {
			b.reportProblem(a.Expr.Range(), "command is empty",
				"Its first element is the program, and the others are its arguments: command = [\"echo\", \"hello\"].")
		} else if ok {
			b.setProgram(list[0], list[1:])
		}
	case "script":
		b.readScript(a, arguments)
	}
}

// setProgram finds the program as the user's shell would: in the job's directory, or for
// a bare name along PATH.
func (b programReader) setProgram(t taskText, arguments []taskText) {
	b.setArguments(arguments)
	name, fixed := t.fixedText()
	if b.transferReader().refuseJobNumber(t, "a program") || b.taskReader().refusePort(t, "a program") {
		return
	}
	if !fixed {
		b.setPrograms(t)
		return
	}
	cmd, ok := b.findProgram(name, t.sourceRange)
	if ok {
		b.ad.SetString(roost.AttrCmd, EscapeLiteral(cmd))
	}
}

// setPrograms finds the program of each task.
func (b programReader) setPrograms(t taskText) {
	if name, ok := b.taskReader().deferredPiece(t); ok {
		b.parser.report(deferredDiagnostic(t.sourceRange, name))
		return
	}
	found, values := map[string]string{}, make([]string, b.tasks.count)
	for i := range values {
		name := b.taskReader().taskValue(t, i)
		cmd, ok := found[name]
		if !ok {
			if len(found) == maxCheckedInputs {
				b.reportProblem(t.sourceRange, "the tasks run too many programs",
					fmt.Sprintf("A job runs at most %d different ones. Hand what differs over as arguments.",
						maxCheckedInputs))
				return
			}
			if cmd, ok = b.findProgram(name, t.sourceRange); !ok {
				return
			}
			found[name] = cmd
		}
		values[i] = cmd
	}
	b.ad.SetString(roost.AttrCmd, "$("+b.taskReader().addColumn("program", "", values)+")")
}

// findProgram returns the Cmd of a program. A program below the job's directory stays
// relative to it, and is sent along when files are transferred, so it is found in both
// ways of running.
func (b programReader) findProgram(name string, at hcl.Range) (string, bool) {
	if strings.TrimSpace(name) == "" {
		b.reportProblem(at, "the executable is empty",
			"Name a program: \"./simulate\", or \"python3\" for one along PATH.")
		return "", false
	}
	if isInPackage(b.ad, name) || hasImage(b.body) && (path.IsAbs(name) || !strings.Contains(name, "/")) {
		return name, true // of the image
	}
	iwd, known := b.workingDirectory.fixedText()
	files := b.parser.options.Files
	if !known || files == nil {
		return name, true
	}
	where := absolutePath(name, iwd, b.parser.options.Home)
	info, err := files.Stat(where)
	switch {
	case err == nil && info.IsDir() && (strings.Contains(name, "/") || b.findOnPath(name) == ""):
		b.parser.report(missingFileDiagnostic(&at, fmt.Sprintf("%q is a directory", name),
			"The executable has to be a program."))
		return "", false
	case err == nil && !info.IsDir():
		if files.Access(where, true) != nil {
			b.parser.report(missingFileDiagnostic(&at, fmt.Sprintf("%q cannot be executed", name),
				notExecutableError(where)))
			return "", false
		}
		local := localName(name, where, iwd)
		if local == "" {
			return where, true
		}
		b.inputs = append(b.inputs, inputFile{sourcePath: fixedText(where, at), name: fixedText(local, at),
			program: true})
		if !strings.Contains(local, "/") {
			local = "./" + local
		}
		return local, true
	}
	if found := b.findOnPath(name); found != "" {
		return found, true
	}
	if local := localName(name, where, iwd); b.parser.options.LateFiles && local == "" {
		return where, true
	} else if b.parser.options.LateFiles {
		b.inputs = append(b.inputs, inputFile{sourcePath: fixedText(where, at), name: fixedText(local, at),
			program: true})
		return strings.Replace("./"+local, ".//", "./", 1), true
	}
	hint := fmt.Sprintf("Nothing is at %s.", where)
	if !strings.Contains(name, "/") {
		hint = fmt.Sprintf("It is neither in the job's directory, %s, nor along PATH.", iwd)
	}
	if strings.Contains(name, " ") {
		hint += fmt.Sprintf(" An executable is the name of one program; its arguments are written as a list: "+
			"command = [%s].",
			quoteWords(name))
	} else {
		hint += " Check the name" + b.transferReader().similarFile(where) + ", or set directory = \"…\" to where it is."
	}
	b.parser.report(missingFileDiagnostic(&at, fmt.Sprintf("the executable %q is not there", truncateText(name)), hint))
	return "", false
}

// localName returns the name of a file relative to the job's directory, or "" if it is
// outside.
func localName(name, where, iwd string) string {
	if strings.HasPrefix(where, strings.TrimSuffix(iwd, "/")+"/") && !path.IsAbs(name) &&
		!strings.HasPrefix(name, "~") {
		return where[len(strings.TrimSuffix(iwd, "/"))+1:]
	}
	return ""
}

func (b programReader) findOnPath(name string) string {
	if strings.Contains(name, "/") {
		return ""
	}
	found, err := b.parser.options.Files.LookPath(name)
	if err != nil {
		return ""
	}
	return found
}

func notExecutableError(where string) string {
	return fmt.Sprintf("You may not run it. Make it a program with chmod +x %s, or name its interpreter: command "+
		"= [\"python3\", %q].", where, where)
}

func quoteWords(s string) string {
	words := strings.Fields(s)
	for i, w := range words {
		words[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(words, ", ")
}

func (b programReader) setArguments(list []taskText) {
	if len(list) == 0 {
		return
	}
	b.ad.SetStrings(roost.AttrArguments, adTextList(list))
}

func adTextList(list []taskText) []string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = t.adText()
	}
	return out
}

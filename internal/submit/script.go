package submit

import (
	"fmt"
	"path"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
)

// maxInlineScript bounds a script that is passed as an argument. Linux accepts no
// argument of more than 128 KiB (MAX_ARG_STRLEN).
const maxInlineScript = 100 << 10

// readScript reads an inline script. The text of a script cannot refer to columns,
// because a shell uses "$", too. A script that differs between tasks is passed to its
// shell as an argument.
func (b programReader) readScript(a *hclsyntax.Attribute, arguments []taskText) {
	t, ok := b.taskReader().readText(a.Expr, "script")
	if !ok {
		return
	}
	body, fixed := t.fixedText()
	if fixed && strings.TrimSpace(body) == "" {
		b.reportProblem(a.Expr.Range(), "the script is empty",
			"Write the lines that are to be run:\n\n  script = <<-END\n    echo hello\n  END\n")
		return
	}
	if len(body) > roost.MaxAdBytes/2 {
		b.reportProblem(a.Expr.Range(), "the script is too long",
			fmt.Sprintf("It has %v, and at most %v can be sent. Save it as a file, and name that: executable "+
				"= \"./script.sh\".", roost.Bytes(len(body)), roost.Bytes(roost.MaxAdBytes/2)))
		return
	}
	first, _, _ := strings.Cut(t.pieces[0].fixed, "\n")
	shell, options, ok := b.interpreter(first, a.Expr.Range())
	if !ok {
		return
	}
	if fixed && len(options) == 0 {
		b.ad.SetString(roost.AttrScript, body)
		b.ad.SetString(roost.AttrShell, shell)
		b.setArguments(arguments)
		return
	}
	flag := inlineFlag(shell)
	if fixed && flag == "" && strings.HasPrefix(body, "#!") && b.body.Attributes["shell"] == nil {
		b.ad.SetString(roost.AttrScript, body) // the machine reads its first line, as the kernel does
		b.setArguments(arguments)
		return
	}
	if flag == "" || len(t.adText()) > maxInlineScript {
		b.reportProblem(a.Expr.Range(), "this script cannot differ between tasks",
			fmt.Sprintf("Only a script of at most %v for a shell, Python or Perl can hold task.index or each. Hand "+
				"the value in as an "+
				"argument, arguments = [task.index], and read it in the script ($1 in a shell).",
				roost.Bytes(maxInlineScript)))
		return
	}
	b.ad.SetString(roost.AttrCmd, EscapeLiteral(shell))
	list := make([]taskText, 0, len(options)+4+len(arguments))
	for _, o := range options {
		list = append(list, fixedText(o, a.Expr.Range()))
	}
	list = append(list, fixedText(flag, a.Expr.Range()), t)
	if flag == "-c" && !strings.HasPrefix(path.Base(shell), "python") {
		list = append(list, fixedText(b.name, a.Expr.Range())) // $0
	}
	b.setArguments(append(list, arguments...))
}

// inlineFlag returns the option with which an interpreter takes its program as an
// argument, or "".
func inlineFlag(shell string) string {
	switch base := path.Base(shell); {
	case base == "sh" || base == "bash" || base == "dash" || base == "ash" || base == "ksh" || base == "zsh" ||
		strings.HasPrefix(base, "python"):
		return "-c"
	case base == "perl" || base == "ruby":
		return "-e"
	}
	return ""
}

// interpreter returns the interpreter of a script. It is the shell that is set, the one
// that the first line names with "#!", or the default.
func (b programReader) interpreter(first string, at hcl.Range) (shell string, options []string, ok bool) {
	words := []string{b.parser.options.Defaults.Shell}
	if s, where, set := b.constantText("shell", "Write the path of a program: shell = \"/bin/bash\"."); set {
		words, at = []string{s}, where
	} else if b.body.Attributes["shell"] != nil {
		return "", nil, false
	} else if line, found := strings.CutPrefix(first, "#!"); found && strings.TrimSpace(line) != "" {
		words = strings.Fields(line)
		if path.Base(words[0]) == "env" && len(words) > 1 {
			words = words[1:]
			if words[0] == "-S" {
				words = words[1:]
			}
		}
	}
	if len(words) == 0 || words[0] == "" {
		return "", nil, false
	}
	shell, ok = b.findShell(words[0], at)
	return shell, words[1:], ok
}

func (b programReader) findShell(name string, at hcl.Range) (string, bool) {
	files := b.parser.options.Files
	if files == nil || hasImage(b.body) && (path.IsAbs(name) || !strings.Contains(name, "/")) {
		return name, true // that of an image is in the image
	}
	where := name
	if !strings.Contains(name, "/") {
		where = b.findOnPath(name)
	} else if iwd, fixed := b.workingDirectory.fixedText(); fixed {
		where = absolutePath(name, iwd, b.parser.options.Home)
	}
	if where != "" {
		if info, err := files.Stat(where); err == nil && !info.IsDir() && files.Access(where, true) == nil {
			return where, true
		}
	}
	b.parser.report(missingFileDiagnostic(&at, fmt.Sprintf("the shell %q is not there", truncateText(name)),
		"Name an interpreter by its path, as in shell = \"/bin/bash\". It is given the script as a file."))
	return "", false
}

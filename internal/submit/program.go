package submit

import (
	"fmt"
	"path"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/roost-batch/roost"
	"github.com/zclconf/go-cty/cty"
)

// maxInlineScript bounds a script that travels as an argument: Linux takes no argument of more than 128 KiB (MAX_ARG_STRLEN).
const maxInlineScript = 100 << 10

// readProgram reads what is run: one of executable, command and script.
func (b *builder) readProgram() {
	var set []*hclsyntax.Attribute
	for _, name := range []string{"executable", "command", "script"} {
		if a := b.body.Attributes[name]; a != nil {
			set = append(set, a)
		}
	}
	if len(set) == 0 {
		b.fail(b.block.DefRange(), "this job has nothing to run", "Say what it runs with one of\n\n  command    = [\"python3\", \"train.py\", \"--seed=${task.index}\"]\n  executable = \"./simulate\"\n  script     = <<-END\n    echo hello\n  END\n")
		return
	}
	if len(set) > 1 {
		b.fail(set[1].NameRange, fmt.Sprintf("%s and %s cannot both be set", set[0].Name, set[1].Name), "A job runs one thing: an executable with arguments, a command (both in one list), or a script. Remove one of the two.")
		return
	}
	if shell := b.body.Attributes["shell"]; shell != nil && set[0].Name != "script" {
		b.fail(shell.NameRange, "shell is only for a script", fmt.Sprintf("What this job runs is its %s, without a shell. For a shell's line write script = \"…\".", set[0].Name))
	}
	arguments, _ := b.textsOf("arguments")
	a, ok := b.attr(set[0].Name, b.roots()...)
	if !ok {
		return
	}
	switch a.Name {
	case "executable":
		if t, ok := b.text(a.Expr, "executable"); ok {
			b.setProgram(t, arguments)
		}
	case "command":
		if other := b.body.Attributes["arguments"]; other != nil {
			b.fail(other.NameRange, "command and arguments cannot both be set", "command holds the program and its arguments in one list; arguments belong to executable and to script.")
		}
		list, ok := b.texts(a.Expr, "command")
		if ok && len(list) == 0 {
			b.fail(a.Expr.Range(), "command is empty", "Its first element is the program, and the others are its arguments: command = [\"echo\", \"hello\"].")
		} else if ok {
			b.setProgram(list[0], list[1:])
		}
	case "script":
		b.readScript(a, arguments)
	}
}

// setProgram finds the program, as the user's shell would: a bare name in the job's directory or else along PATH.
func (b *builder) setProgram(t text, arguments []text) {
	b.setArguments(arguments)
	name, fixed := t.fixed()
	if !fixed {
		b.setPrograms(t)
		return
	}
	cmd, ok := b.findProgram(name, t.at)
	if ok {
		b.ad.SetString(roost.AttrCmd, Literal(cmd))
	}
}

// setPrograms finds the program of each task.
func (b *builder) setPrograms(t text) {
	found, values := map[string]string{}, make([]string, b.tasks.count)
	for i := range values {
		name := t.of(i, b.columns)
		cmd, ok := found[name]
		if !ok {
			if len(found) == maxChecked {
				b.fail(t.at, "the tasks run too many programs", fmt.Sprintf("A job runs at most %d different ones. Hand what differs over as arguments.", maxChecked))
				return
			}
			if cmd, ok = b.findProgram(name, t.at); !ok {
				return
			}
			found[name] = cmd
		}
		values[i] = cmd
	}
	b.ad.SetString(roost.AttrCmd, "$("+b.addColumn("program", "", values)+")")
}

// findProgram returns the Cmd for a program: what is below the job's directory stays relative to it and is sent along when
// files are transferred, so that it is found in both ways of running.
func (b *builder) findProgram(name string, at hcl.Range) (string, bool) {
	if strings.TrimSpace(name) == "" {
		b.fail(at, "the executable is empty", "Name a program: \"./simulate\", or \"python3\" for one along PATH.")
		return "", false
	}
	iwd, known := b.iwd.fixed()
	files := b.p.opts.Files
	if !known || files == nil {
		return name, true
	}
	where := absolute(name, iwd, b.p.opts.Home)
	info, err := files.Stat(where)
	switch {
	case err == nil && info.IsDir() && (strings.Contains(name, "/") || b.onPath(name) == ""):
		b.p.report(missing(&at, fmt.Sprintf("%q is a directory", name), "The executable has to be a program."))
		return "", false
	case err == nil && !info.IsDir():
		if files.Access(where, true) != nil {
			b.p.report(missing(&at, fmt.Sprintf("%q cannot be executed", name), notExecutable(where)))
			return "", false
		}
		local := localName(name, where, iwd)
		if local == "" {
			return where, true
		}
		b.inputs = append(b.inputs, input{from: fixedText(where, at), name: fixedText(local, at), program: true})
		if !strings.Contains(local, "/") {
			local = "./" + local
		}
		return local, true
	}
	if found := b.onPath(name); found != "" {
		return found, true
	}
	cure := fmt.Sprintf("Nothing is at %s.", where)
	if !strings.Contains(name, "/") {
		cure = fmt.Sprintf("It is neither in the job's directory, %s, nor along PATH.", iwd)
	}
	if strings.Contains(name, " ") {
		cure += fmt.Sprintf(" An executable is the name of one program; its arguments stand in a list: command = [%s].", quoteWords(name))
	} else {
		cure += " Check the name" + b.similar(where) + ", or set directory = \"…\" to where it is."
	}
	b.p.report(missing(&at, fmt.Sprintf("the executable %q is not there", shorten(name)), cure))
	return "", false
}

// localName is the name of a file relative to the job's directory, or "" when it is outside of it.
func localName(name, where, iwd string) string {
	if strings.HasPrefix(where, strings.TrimSuffix(iwd, "/")+"/") && !path.IsAbs(name) && !strings.HasPrefix(name, "~") {
		return where[len(strings.TrimSuffix(iwd, "/"))+1:]
	}
	return ""
}

func (b *builder) onPath(name string) string {
	if strings.Contains(name, "/") {
		return ""
	}
	found, err := b.p.opts.Files.LookPath(name)
	if err != nil {
		return ""
	}
	return found
}

func notExecutable(where string) string {
	return fmt.Sprintf("You may not run it. Make it a program with chmod +x %s, or name its interpreter: command = [\"python3\", %q].", where, where)
}

func quoteWords(s string) string {
	words := strings.Fields(s)
	for i, w := range words {
		words[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(words, ", ")
}

func (b *builder) setArguments(list []text) {
	if len(list) == 0 {
		return
	}
	b.ad.SetStrings(roost.AttrArguments, adTexts(list))
}

func adTexts(list []text) []string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = t.ad()
	}
	return out
}

// readScript reads an inline script. The text of a script cannot refer to columns, because "$" means something else to a
// shell: a script that differs between tasks is handed to its shell as an argument instead.
func (b *builder) readScript(a *hclsyntax.Attribute, arguments []text) {
	t, ok := b.text(a.Expr, "script")
	if !ok {
		return
	}
	body, fixed := t.fixed()
	if fixed && strings.TrimSpace(body) == "" {
		b.fail(a.Expr.Range(), "the script is empty", "Write the lines that are to be run:\n\n  script = <<-END\n    echo hello\n  END\n")
		return
	}
	if len(body) > roost.MaxAdBytes/2 {
		b.fail(a.Expr.Range(), "the script is too long", fmt.Sprintf("It has %v, and at most %v can be sent. Save it as a file, and name that: executable = \"./script.sh\".", roost.Bytes(len(body)), roost.Bytes(roost.MaxAdBytes/2)))
		return
	}
	first, _, _ := strings.Cut(t.pieces[0].fixed, "\n")
	shell, options, ok := b.shellOf(first, a.Expr.Range())
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
	if flag == "" || len(t.ad()) > maxInlineScript {
		b.fail(a.Expr.Range(), "this script cannot differ between tasks", fmt.Sprintf("Only a script of at most %v for a shell, Python or Perl can hold task.index or each. Hand the value in as an "+
			"argument, arguments = [task.index], and read it in the script ($1 in a shell).", roost.Bytes(maxInlineScript)))
		return
	}
	b.ad.SetString(roost.AttrCmd, Literal(shell))
	list := make([]text, 0, len(options)+4+len(arguments))
	for _, o := range options {
		list = append(list, fixedText(o, a.Expr.Range()))
	}
	list = append(list, fixedText(flag, a.Expr.Range()), t)
	if flag == "-c" && !strings.HasPrefix(path.Base(shell), "python") {
		list = append(list, fixedText(b.name, a.Expr.Range())) // $0
	}
	b.setArguments(append(list, arguments...))
}

// inlineFlag is the option with which an interpreter takes its program as an argument, or "".
func inlineFlag(shell string) string {
	switch base := path.Base(shell); {
	case base == "sh" || base == "bash" || base == "dash" || base == "ash" || base == "ksh" || base == "zsh" || strings.HasPrefix(base, "python"):
		return "-c"
	case base == "perl" || base == "ruby":
		return "-e"
	}
	return ""
}

// shellOf finds the interpreter: the shell that is set, the one that the first line names with "#!", or the default.
func (b *builder) shellOf(first string, at hcl.Range) (shell string, options []string, ok bool) {
	words := []string{b.p.opts.Defaults.Shell}
	if s, where, set := b.sameText("shell", "Write the path of a program: shell = \"/bin/bash\"."); set {
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

func (b *builder) findShell(name string, at hcl.Range) (string, bool) {
	files := b.p.opts.Files
	if files == nil {
		return name, true
	}
	where := name
	if !strings.Contains(name, "/") {
		where = b.onPath(name)
	} else if iwd, fixed := b.iwd.fixed(); fixed {
		where = absolute(name, iwd, b.p.opts.Home)
	}
	if where != "" {
		if info, err := files.Stat(where); err == nil && !info.IsDir() && files.Access(where, true) == nil {
			return where, true
		}
	}
	b.p.report(missing(&at, fmt.Sprintf("the shell %q is not there", shorten(name)), "Name an interpreter by its path, as in shell = \"/bin/bash\". It is given the script as a file."))
	return "", false
}

// textsOf reads a setting that is a list of texts.
func (b *builder) textsOf(name string) ([]text, bool) {
	a, ok := b.attr(name, b.roots()...)
	if !ok {
		return nil, false
	}
	return b.texts(a.Expr, name)
}

// texts reads an expression that gives a list of texts.
func (b *builder) texts(expr hclsyntax.Expression, what string) ([]text, bool) {
	switch e := expr.(type) {
	case *hclsyntax.ParenthesesExpr:
		return b.texts(e.Expression, what)
	case *hclsyntax.TupleConsExpr:
		list, all := make([]text, 0, len(e.Exprs)), true
		for _, x := range e.Exprs {
			t, ok := b.text(x, "an element of "+what)
			list, all = append(list, t), all && ok
		}
		return list, all
	case *hclsyntax.FunctionCallExpr:
		if e.Name == "concat" && !e.ExpandFinal && b.p.perTask(e) {
			list, all := []text(nil), true
			for _, x := range e.Args {
				part, ok := b.texts(x, what)
				list, all = append(list, part...), all && ok
			}
			return list, all
		}
	}
	if !b.p.perTask(expr) {
		v, ok := b.p.eval(expr, b.p.root)
		if !ok || v.IsNull() {
			return nil, false
		}
		strs, ok := b.listOf(v, expr.Range(), what)
		list := make([]text, len(strs))
		for i, s := range strs {
			list[i] = fixedText(s, expr.Range())
		}
		return list, ok
	}
	return b.computeList(expr, what)
}

// computeList evaluates a list for every task; each place of it becomes a column.
func (b *builder) computeList(expr hclsyntax.Expression, what string) ([]text, bool) {
	var columns [][]string
	ok := b.forEachTask(expr, func(i int, v cty.Value) bool {
		list, ok := b.listOf(v, expr.Range(), what)
		if !ok {
			return false
		}
		if i == 0 {
			columns = make([][]string, len(list))
		}
		if len(list) != len(columns) {
			b.fail(expr.Range(), what+" has to have the same length for all tasks", fmt.Sprintf("It has %d elements for task 0 and %d for task %d. Make one job for each length.", len(columns), len(list), i))
			return false
		}
		for k, s := range list {
			columns[k] = append(columns[k], s)
		}
		return true
	})
	if !ok {
		return nil, false
	}
	out := make([]text, len(columns))
	for k, values := range columns {
		out[k] = text{[]piece{{column: b.addColumn("computed", "", values)}}, expr.Range()}
	}
	return out, true
}

func (b *builder) listOf(v cty.Value, at hcl.Range, what string) ([]string, bool) {
	ty := v.Type()
	if v.IsNull() || !(ty.IsListType() || ty.IsTupleType() || ty.IsSetType()) {
		cure := "Write a list in brackets: " + what + " = [\"a\", \"b\"]."
		if ty == cty.String && !v.IsNull() {
			cure = fmt.Sprintf("Write a list in brackets: %s = [%s].", what, quoteWords(shorten(v.AsString())))
		}
		b.fail(at, what+" has to be a list", fmt.Sprintf("It is %s. %s", describe(v), cure))
		return nil, false
	}
	out := make([]string, 0, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		s, ok := b.textOf(e, at, "an element of "+what)
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

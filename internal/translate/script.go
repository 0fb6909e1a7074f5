package translate

import (
	"fmt"
	"path"
	"strings"

	"github.com/roost-batch/roost/internal/lazyregexp"
)

// parsedScript is a script split into its parts.
type parsedScript struct {
	shebang        string // first line if it begins with #!, otherwise empty
	lines          []string
	numbers        []int             // line numbers in the file
	directives     []scriptDirective // valid directives, in order
	lateDirectives []scriptDirective // directives after the first command, which both systems ignore
}

// scriptDirective is the text of a line after its prefix.
type scriptDirective struct {
	line int
	text string // whole line, for messages
	args string
}

// parseScript separates the directives, which are translated and removed, from the
// commands. If joined is set, a line that ends in a backslash continues in the next one.
func parseScript(source string, prefix func(line string) (args string, ok bool), joined bool) parsedScript {
	var s parsedScript
	begun := false
	lines := strings.Split(strings.TrimSuffix(source, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if i == 0 && strings.HasPrefix(line, "#!") {
			s.shebang = line
			continue
		}
		if args, ok := prefix(line); ok {
			d := scriptDirective{i + 1, line, args}
			for joined && strings.HasSuffix(d.args, `\`) && i+1 < len(lines) {
				i++
				d.args = strings.TrimSuffix(d.args, `\`) + strings.TrimLeft(lines[i], " \t")
			}
			if begun {
				s.lateDirectives = append(s.lateDirectives, d)
			} else {
				s.directives = append(s.directives, d)
			}
			continue
		}
		if trimmed := strings.TrimSpace(line); trimmed != "" && trimmed[0] != '#' {
			begun = true
		}
		s.lines, s.numbers = append(s.lines, line), append(s.numbers, i+1)
	}
	return s
}

// hasCommands reports whether the script has commands.
func (s *parsedScript) hasCommands() bool {
	for _, l := range s.lines {
		if t := strings.TrimSpace(l); t != "" && t[0] != '#' {
			return true
		}
	}
	return false
}

// scriptShell is the interpreter in the script's first line.
type scriptShell struct {
	path    string // empty if the first line has none
	options bool   // the first line has options for it
}

func (s *parsedScript) scriptShell() scriptShell {
	line, found := strings.CutPrefix(s.shebang, "#!")
	w := strings.Fields(line)
	if !found || len(w) == 0 {
		return scriptShell{}
	}
	if path.Base(w[0]) == "env" && len(w) > 1 {
		if w = w[1:]; w[0] == "-S" && len(w) > 1 {
			w = w[1:]
		}
	}
	return scriptShell{w[0], len(w) > 1}
}

// shellFamily returns "sh", "csh", or "" for another language.
func (s scriptShell) shellFamily() string {
	switch base := path.Base(s.path); base {
	case "sh", "bash", "dash", "ash", "ksh", "zsh", "ksh93", "mksh":
		return "sh"
	case "csh", "tcsh":
		return "csh"
	}
	return ""
}

// takesInline reports whether the shell accepts options and the script as an argument, as
// internal/submit does it.
func (s scriptShell) takesInline() bool {
	base := path.Base(s.path)
	switch base {
	case "sh", "bash", "dash", "ash", "ksh", "zsh", "perl", "ruby":
		return true
	}
	return strings.HasPrefix(base, "python")
}

// maxInline bounds a script whose first line has options: it is passed as an argument
// (internal/submit has a similar bound).
const maxInline = 90 << 10

// setScript sets the job's script: the commands, after lines that set the variables that
// they read.
func (t *fileTranslation) setScript(j *jobBlock, s *parsedScript) {
	sh := s.scriptShell()
	var prelude []string
	if sh.path == "" {
		sh.path = "/bin/bash"
		j.setText("shell", sh.path)
	}
	known := t.knownVariables(j)
	for _, v := range t.variablesReadBy(s, known) {
		if line := v.assignment(sh.shellFamily()); line != "" {
			prelude = append(prelude, line)
		} else if v.value != "" {
			j.addToMap("environment", v.name, v.value)
		} else if v.runtime != "" {
			v.meaning = "$" + v.roostName +
				": not set under the old name, as only a shell's script could; read it under the new one"
			t.noteDifference(0, "$"+v.name,
				"The script, which no Bourne shell runs, reads a variable that Roost calls "+v.roostName+".")
		}
		if v.name == nodeFile && j.settings["processes"] == "" {
			j.setInt("processes", max(t.request.perNode, 1))
		}
		j.variables = append(j.variables, v)
	}
	prelude = append(prelude, t.noteCommands(j, s, sh.shellFamily())...)
	var b strings.Builder
	if s.shebang != "" {
		b.WriteString(s.shebang + "\n")
	}
	if len(prelude) > 0 {
		b.WriteString("# What follows up to the empty line was added for Roost.\n" +
			strings.Join(prelude, "\n") + "\n\n")
	}
	lines := s.lines
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	b.WriteString(strings.Join(lines, "\n") + "\n")
	j.script = b.String()
	if sh.options && (!sh.takesInline() || len(j.script) > maxInline) {
		j.setText("shell", sh.path)
		t.noteDifference(1, s.shebang,
			"The options of the interpreter are not passed on: the script is passed to it as a file.")
	}
	for _, d := range s.lateDirectives {
		t.noteDifference(d.line, d.text, "It comes after the first command, where "+t.from.displayName()+
			" ignores it; so it was ignored here, too.")
	}
}

// launcher matches the commands of the other systems that a script calls.
var launcher = lazyregexp.New(`(?:^|[;&|(` + "`" +
	`{]|\b(?:do|then|else|time|exec))\s*(srun|sbatch|scancel|squeue|scontrol|sacct|sinfo|sbcast|salloc|sattach|aprun|pbsdsh|pbs_tmrsh|pbsnodes|mpirun|mpiexec)\b(\s+-[^\s]*)?`)

// noteCommands records the called commands that do not exist here. A plain srun in a job
// of single tasks only starts the program, so a shell function replaces it.
func (t *fileTranslation) noteCommands(j *jobBlock, s *parsedScript, family string) (prelude []string) {
	plain, seen, plainLine := true, map[string]bool{}, 0
	for i, l := range s.lines {
		if strings.HasPrefix(strings.TrimSpace(l), "#") {
			continue
		}
		for _, m := range launcher().FindAllStringSubmatch(l, -1) {
			name := m[1]
			if name == "srun" {
				plain = plain && m[2] == ""
				if plainLine == 0 {
					plainLine = i
				}
			}
			if seen[name] || name == "srun" {
				continue
			}
			seen[name] = true
			t.noteCommand(j, name, s.numbers[i], l)
		}
	}
	switch {
	case plainLine == 0 && !hasLauncher(s, "srun"):
	case plain && family == "sh":
		prelude = append(prelude, `srun() { "$@"; }`)
	default:
		t.noteDifference(s.numbers[plainLine], s.lines[plainLine],
			"There is no srun in Roost. A task is one process tree on one machine: call the program itself, "+
				"or several of them with & and wait; for several tasks make count larger.")
	}
	return prelude
}

func hasLauncher(s *parsedScript, name string) bool {
	for _, l := range s.lines {
		if strings.HasPrefix(strings.TrimSpace(l), "#") {
			continue
		}
		for _, m := range launcher().FindAllStringSubmatch(l, -1) {
			if m[1] == name {
				return true
			}
		}
	}
	return false
}

func (t *fileTranslation) noteCommand(j *jobBlock, name string, line int, source string) {
	switch name {
	case "pbsdsh", "pbs_tmrsh", "pbsnodes":
		return // they exist here, too
	case "mpirun", "mpiexec", "aprun":
		if j.gang > 1 {
			t.noteDifference(line, source,
				fmt.Sprintf("Here every one of the %d tasks runs the whole script, and each would start this. Let "+
					"only the first do it, [ \"$ROOST_GANG_RANK\" = 0 ] && …, with the machines of "+
					"$ROOST_GANG_NODES; or, on one large machine, remove gang and count and ask for all the cores "+
					"at once.", j.gang))
		}
		return
	case "sbatch", "salloc":
		t.noteDifference(line, source, "Jobs are submitted with roost submit FILE, or qsub; what is to follow "+
			"this one can be in the same job file, with depends_on = [job.NAME].")
		return
	}
	here := map[string]string{"scancel": "roost rm", "squeue": "roost jobs",
		"scontrol": "roost show, hold, release and nodes", "sacct": "roost history", "sinfo": "roost nodes",
		"sbcast": "inputs", "sattach": "roost logs -f"}[name]
	t.noteDifference(line, source, "There is no "+name+" in Roost; what does its work is "+here+".")
}

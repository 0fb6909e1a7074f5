package makefile

import (
	"fmt"
	"strings"
)

// Database is what make -p prints of a makefile.
type Database struct {
	Targets   map[string]*Target
	Variables map[string]Variable // global ones
	Patterns  []PatternVariables
	Makefiles []string // that make has read
	// messages of make about goals for which nothing is to be done
	Messages []string
	traced   []string // targets whose recipes make would run, in its order
}

// Target is a file, or a name, of the data base.
type Target struct {
	Name           string
	Prerequisites  []string
	OrderOnly      []string
	IsTarget       bool // a rule has it as its target
	HasRecipe      bool
	IsDoubleColon  bool
	IsIntermediate bool
	AlsoMakes      []string // targets that its recipe makes, too
	Variables      map[string]Variable
	Newer          []string // the value of $?; valid if HasAutomatic is set
	HasAutomatic   bool     // its automatic variables have values
}

// Variable is a variable of the data base.
type Variable struct {
	Value      string
	IsExpanded bool // it was set with :=, so its value is not expanded again
}

// PatternVariables are variables of the targets that a pattern matches.
type PatternVariables struct {
	Pattern   string
	Variables map[string]Variable
}

// The lines by which the parts of the data base begin.
const (
	databaseHead  = "# Make data base, printed on"
	variablesHead = "# Variables"
	patternsHead  = "# Pattern-specific Variable Values"
	filesHead     = "# Files"
	filesEnd      = "# files hash-table stats:"
)

// ParseDatabase reads the output of make -n -p --trace, in English.
func ParseDatabase(output string) (*Database, error) {
	d := &Database{Targets: map[string]*Target{}, Variables: map[string]Variable{}}
	lines := strings.Split(output, "\n")
	begin := lastLine(lines, 0, func(l string) bool { return strings.HasPrefix(l, databaseHead) })
	if begin < 0 {
		return nil, fmt.Errorf("make has printed no data base; GNU make is needed")
	}
	is := func(head string) func(string) bool { return func(l string) bool { return l == head } }
	files := lastLine(lines, begin, is(filesHead))
	if files < 0 {
		return nil, fmt.Errorf("the data base of make has no files")
	}
	d.readTrace(lines[:begin])
	patterns := lastLine(lines[:files], begin, is(patternsHead))
	if patterns < 0 {
		patterns = files
	}
	d.readVariables(lines[begin:patterns])
	d.readPatterns(lines[patterns:files])
	r := entryReader{database: d, lines: lines[files+1:]}
	for r.next() {
		r.readEntry()
	}
	d.Makefiles = strings.Fields(d.Variables["MAKEFILE_LIST"].Value)
	return d, nil
}

// lastLine returns the number of the last line from first on that is wanted; -1: none.
func lastLine(lines []string, first int, wanted func(string) bool) int {
	for i := len(lines) - 1; i >= first; i-- {
		if wanted(lines[i]) {
			return i
		}
	}
	return -1
}

// readTrace reads the lines in which make says why it would run a recipe.
func (d *Database) readTrace(lines []string) {
	for _, l := range lines {
		if strings.HasSuffix(l, "is up to date.") || strings.Contains(l, ": Nothing to be done for '") {
			d.Messages = append(d.Messages, l)
			continue
		}
		_, rest, ok := strings.Cut(l, ": update target '")
		if !ok {
			_, rest, ok = strings.Cut(l, ": target '")
		}
		if !ok {
			continue
		}
		if i := strings.LastIndex(rest, "' due to: "); i >= 0 {
			d.traced = append(d.traced, rest[:i])
		} else if name, ok := strings.CutSuffix(rest, "' does not exist"); ok {
			d.traced = append(d.traced, name)
		}
	}
}

// isOrigin reports whether a comment says where the variable of the next line is from.
func isOrigin(comment string) bool {
	for _, word := range []string{"makefile", "environment", "default", "command line", "automatic", "'override'"} {
		if strings.HasPrefix(comment, "# "+word) {
			return true
		}
	}
	return false
}

// assignment reads NAME = VALUE and its like.
func assignment(line string) (name string, v Variable, ok bool) {
	name, value, ok := strings.Cut(line, " := ")
	if head, _, other := strings.Cut(line, " = "); other && (!ok || len(head) < len(name)) {
		name, v.Value, _ = strings.Cut(line, " = ")
		return name, v, !strings.Contains(name, " ")
	}
	if !ok {
		name, ok = strings.CutSuffix(line, " :=")
	}
	return name, Variable{strings.ReplaceAll(value, "$$", "$"), true}, ok && !strings.Contains(name, " ")
}

// readVariables reads the global variables that have one line.
func (d *Database) readVariables(lines []string) {
	for i := 1; i < len(lines); i++ {
		if name, v, ok := assignment(lines[i]); ok && isOrigin(lines[i-1]) {
			d.Variables[name] = v
		}
	}
}

// readPatterns reads the variables of patterns.
func (d *Database) readPatterns(lines []string) {
	origin := false
	for _, l := range lines {
		pattern, isHead := strings.CutSuffix(l, " :")
		switch comment, isComment := strings.CutPrefix(l, "# "); {
		case isHead && !isComment:
			d.Patterns = append(d.Patterns, PatternVariables{pattern, map[string]Variable{}})
		case isComment && isOrigin(l):
			origin = true
		case isComment && origin && len(d.Patterns) > 0:
			if name, v, ok := assignment(comment); ok {
				d.Patterns[len(d.Patterns)-1].Variables[name] = v
			}
			origin = false
		}
	}
}

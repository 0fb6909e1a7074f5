// Package script runs scripts that state the rules of a pure core. A script is a file of
// steps, each a command with its input, a line of four dashes, and the resulting state.
// Tests compare the states; with -rewrite they write them, to be reviewed as prose.
//
//	cell
//	node1 cpus=8 memory=16GiB
//	----
//	1 machine
//
// Steps are separated by empty lines. Lines that start with # before a step are comments,
// and are preserved.
package script

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewriteScripts = flag.Bool("rewrite", false, "write the outcomes of stories instead of comparing them")

// ScriptCommand is one step of a script.
type ScriptCommand struct {
	Command string   // first word of the first line
	Args    []string // other words of the first line
	Input   []string // the lines after the first
	Line    int      // number of the step's first line, from 1

	comment string
	want    string
}

// Run runs every script whose path matches pattern. It calls begin for each script; the
// result executes the steps, in order, and returns the state after each.
func Run(t *testing.T, pattern string, begin func(t *testing.T) func(ScriptCommand) string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no story matches %s (%v)", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runFile(t, file, begin(t)) })
	}
}

func runFile(t *testing.T, file string, do func(ScriptCommand) string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for i, s := range splitScript(string(text)) {
		got := strings.TrimRight(do(s), "\n")
		if !*rewriteScripts && got != s.want {
			t.Errorf("%s:%d: %s\ngot:\n%s\nwant:\n%s", file, s.Line, s.Command, got, s.want)
		}
		if i > 0 {
			out.WriteByte('\n')
		}
		out.WriteString(s.comment + strings.Join(append([]string{s.Command}, s.Args...), " ") + "\n")
		for _, line := range s.Input {
			out.WriteString(line + "\n")
		}
		out.WriteString("----\n")
		if got != "" {
			out.WriteString(got + "\n")
		}
	}
	if *rewriteScripts {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// splitScript splits a script into steps.
func splitScript(text string) []ScriptCommand {
	var steps []ScriptCommand
	var comment strings.Builder
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		line := lines[i]
		if line == "" || strings.HasPrefix(line, "#") {
			if line != "" {
				comment.WriteString(line + "\n")
			} else if comment.Len() > 0 {
				comment.WriteString("\n")
			}
			i++
			continue
		}
		words := strings.Fields(line)
		s := ScriptCommand{Command: words[0], Args: words[1:], Line: i + 1, comment: comment.String()}
		comment.Reset()
		for i++; i < len(lines) && lines[i] != "----"; i++ {
			s.Input = append(s.Input, lines[i])
		}
		var want []string
		for i++; i < len(lines) && lines[i] != ""; i++ {
			want = append(want, lines[i])
		}
		s.want = strings.Join(want, "\n")
		steps = append(steps, s)
	}
	return steps
}

package sbatch

import (
	"errors"
	"fmt"
	"strings"

	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/slurm/getopt"
)

// checkScript says why a text is no batch script, in sbatch's words.
func checkScript(text string) error {
	switch {
	case text == "":
		return errors.New("Batch script is empty!")
	case strings.TrimSpace(text) == "":
		return errors.New("Batch script contains only whitespace!")
	case !strings.HasPrefix(text, "#!"):
		return errors.New("This does not look like a batch script.  The first\n" +
			"sbatch: error: line must start with #! followed by the path to an interpreter.\n" +
			"sbatch: error: For instance: #!/bin/sh")
	case strings.Contains(text, "\r\n"):
		return errors.New("Batch script contains DOS line breaks (\\r\\n)\n" +
			"sbatch: error: instead of expected UNIX line breaks (\\n).")
	case strings.Contains(text, "\x00"):
		return errors.New("The Slurm controller does not allow scripts that contain a NULL character '\\0'.")
	}
	return nil
}

// directives returns the options of the lines with #SBATCH, up to the first command.
// Warnings are about lines that were meant to be such ones. Its errors are of type
// *Failure.
func directives(file, text string, table *getopt.Table) (given []getopt.Given, warnings string, err error) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\n")
		rest, ok := strings.CutPrefix(line, "#SBATCH")
		switch {
		case strings.HasPrefix(line, "#SLURM"):
			warnings += "sbatch: error: Change from #SLURM to #SBATCH in your script and verify the options are " +
				"valid in sbatch\n"
			continue
		case !ok && (strings.TrimSpace(line) == "" || strings.HasPrefix(strings.TrimSpace(line), "#")):
			continue
		case !ok:
			return given, warnings, nil
		case rest != "" && rest[0] != ' ' && rest[0] != '\t':
			continue
		}
		words, ok := qsub.SplitWords(withoutComment(rest))
		if !ok {
			quote := "\""
			if i := strings.IndexAny(rest, "\"'"); i >= 0 {
				quote, rest = rest[i:i+1], " "+rest[i:]
			}
			return nil, "", &Failure{fmt.Sprintf("sbatch: fatal: %s: line %d: Unmatched `%s` in [%s]\n", file, number,
				quote, rest), 1}
		}
		options, operands, err := table.Parse(words)
		if err != nil {
			return nil, "", &Failure{getopt.Message("sbatch", err), UsageStatus}
		}
		if len(operands) > 0 {
			return nil, "", &Failure{fmt.Sprintf("sbatch: error: Invalid directive found in batch script: %s\n",
				operands[0]), UsageStatus}
		}
		given = append(given, options...)
	}
	return given, warnings, nil
}

// withoutComment removes what follows a # that is in no quotes and begins a word.
func withoutComment(s string) string {
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && quote != '\'':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '#' && i > 0 && (s[i-1] == ' ' || s[i-1] == '\t'):
			return s[:i]
		}
	}
	return s
}

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
func directives(text string, table *getopt.Table) (given []getopt.Given, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		rest, ok := strings.CutPrefix(line, "#SBATCH")
		switch {
		case !ok && (strings.TrimSpace(line) == "" || strings.HasPrefix(strings.TrimSpace(line), "#")):
			continue
		case !ok:
			return given, nil
		case rest != "" && rest[0] != ' ' && rest[0] != '\t':
			continue
		}
		words, ok := qsub.SplitWords(withoutComment(rest))
		if !ok {
			return nil, &usageError{fmt.Sprintf("sbatch: fatal: %s: unmatched quote in batch script\n", line)}
		}
		options, operands, err := table.Parse(words)
		if err != nil {
			return nil, &usageError{getopt.Message("sbatch", err)}
		}
		if len(operands) > 0 {
			return nil, &usageError{fmt.Sprintf("Invalid directive found in batch script: %s\n", operands[0])}
		}
		given = append(given, options...)
	}
	return given, nil
}

// usageError is a command line or directive that cannot be read: what is printed of it.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

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

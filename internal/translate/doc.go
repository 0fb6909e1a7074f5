// Package translate turns what people wrote for other batch systems into job files of HCL: scripts of PBS (OpenPBS and
// Torque) and Slurm, and submit descriptions of HTCondor.
//
//	text ──▶ directives ──▶ job (settings, script, notes) ──▶ HCL ──▶ internal/submit
//	                                   ▲                                   │
//	                                   └──── what it refuses: a note ◀─────┘
//
// The commands of a script stay as they are. Whatever has no counterpart, or means something slightly different here, becomes
// a comment with the line that it stood in and what to do about it; nothing is dropped silently. What the script reads of the
// other system's environment is set under the same names, so that it works unchanged where that is possible.
//
// The result is given to internal/submit before it is returned, and a setting that is refused there becomes a comment, too: the
// text always parses. The sources are the manuals: sbatch(1) of Slurm 24.11, qsub(1B) of OpenPBS and Torque, condor_submit(1).
//
// The package is pure.
package translate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
)

// Dialect is a language that can be translated.
type Dialect string

// The dialects. Torque's scripts are told from those of OpenPBS by what only Torque has; most mean the same in both.
const (
	PBS    Dialect = "pbs"
	Torque Dialect = "torque"
	Slurm  Dialect = "slurm"
	Condor Dialect = "condor"
)

// Dialects returns the names of all of them.
func Dialects() []string {
	return []string{string(PBS), string(Torque), string(Slurm), string(Condor)}
}

// label is what people call the system.
func (d Dialect) label() string {
	return map[Dialect]string{PBS: "PBS", Torque: "Torque", Slurm: "Slurm", Condor: "HTCondor"}[d]
}

// MaxSize bounds what is translated, in bytes.
const MaxSize = 1 << 20

// ErrNothing is what File returns where the text holds nothing that could be translated.
var ErrNothing = errors.New("there is nothing to translate")

// wrong is an error in words for people, with what kind of error it is.
type wrong struct {
	kind error // ErrNothing or a roost.Kind
	text string
}

func (e *wrong) Error() string { return e.text }
func (e *wrong) Unwrap() error { return e.kind }

func nothing(text string) error { return &wrong{ErrNothing, text} }

func unreadable(line int, text string) error {
	return &wrong{roost.Invalid, fmt.Sprintf("line %d: %s", line, text)}
}

// Options says what is translated.
type Options struct {
	Name string  // of the file as the user wrote it; empty for standard input
	From Dialect // empty: found out by looking at the text
}

// Result is a job file.
type Result struct {
	Text    string // HCL
	From    Dialect
	Jobs    int // in it
	Carried int // directives that were carried over
	Lost    int // directives and other things that were not, each of which a comment tells about
	Differs int // those that mean something else here, likewise
}

// File translates one file. Its errors wrap ErrNothing where the text holds no job, and are of kind roost.Invalid where it is
// no text that could be read.
func File(src []byte, opts Options) (Result, error) {
	text, err := readable(src)
	if err != nil {
		return Result{}, err
	}
	from := opts.From
	if from == "" {
		if from = detect(text); from == "" {
			return Result{}, &wrong{ErrNothing, "no line begins with #SBATCH or #PBS, and there is no queue command of HTCondor: say with --from what it is"}
		}
	}
	t := &translation{from: from, file: opts.Name}
	switch from {
	case Slurm:
		err = t.slurm(text)
	case PBS, Torque:
		err = t.pbs(text)
	case Condor:
		err = t.condor(text)
	default:
		return Result{}, &wrong{roost.Usage, fmt.Sprintf("%q is no dialect: there are %s", string(from), strings.Join(Dialects(), ", "))}
	}
	if err != nil {
		return Result{}, err
	}
	return t.settle()
}

// translation is the state of translating one file.
type translation struct {
	from    Dialect
	file    string
	jobs    []*job
	notes   []note
	carried int
	request request
}

// lost notes a line that could not be carried over, and why or what to do instead. Line 0 is the file as a whole.
func (t *translation) lost(line int, source, why string) { t.note(line, source, why, true) }

// differs notes something that means something else here.
func (t *translation) differs(line int, source, why string) { t.note(line, source, why, false) }

func (t *translation) note(line int, source, why string, lost bool) {
	for _, n := range t.notes {
		if n.line == line && n.why == why {
			return
		}
	}
	t.notes = append(t.notes, note{line, source, why, lost})
}

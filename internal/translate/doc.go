// Package translate turns what people wrote for other batch systems into job files of
// HCL: scripts of PBS (OpenPBS and Torque) and Slurm, and submit descriptions of
// HTCondor.
//
//	text ──▶ directives ──▶ job (settings, script, notes) ──▶ HCL ──▶ internal/submit
//	                                   ▲                                   │
//	                                   └──── what it refuses: a note ◀─────┘
//
// The commands of a script stay as they are. Whatever has no counterpart, or means
// something slightly different here, becomes a comment with the line that it stood in and
// what to do about it; nothing is dropped silently. What the script reads of the other
// system's environment is set under the same names, so that it works unchanged where that
// is possible.
//
// The result is given to internal/submit before it is returned, and a setting that is
// refused there becomes a comment, too: the text always parses. The sources are the
// manuals: sbatch(1) of Slurm 24.11, qsub(1B) of OpenPBS and Torque, condor_submit(1).
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

// The dialects. Torque's scripts are told from those of OpenPBS by what only Torque has;
// most mean the same in both.
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

// displayName is what people call the system.
func (d Dialect) displayName() string {
	return map[Dialect]string{PBS: "PBS", Torque: "Torque", Slurm: "Slurm", Condor: "HTCondor"}[d]
}

// MaxSize bounds what is translated, in bytes.
const MaxSize = 1 << 20

// ErrNothing is what TranslateFile returns where the text holds nothing that could be
// translated.
var ErrNothing = errors.New("there is nothing to translate")

// translateError is an error in words for people, with what kind of error it is.
type translateError struct {
	kind error // ErrNothing or a roost.Kind
	text string
}

func (e *translateError) Error() string { return e.text }
func (e *translateError) Unwrap() error { return e.kind }

func nothingError(text string) error { return &translateError{ErrNothing, text} }

func unreadableError(line int, text string) error {
	return &translateError{roost.Invalid, fmt.Sprintf("line %d: %s", line, text)}
}

// SourceOptions says what is translated.
type SourceOptions struct {
	Name string  // of the file as the user wrote it; empty for standard input
	From Dialect // empty: found out by looking at the text
}

// TranslatedFile is a job file.
type TranslatedFile struct {
	Text        string // HCL
	From        Dialect
	Jobs        int // in it
	CarriedOver int // directives that were carried over
	Lost        int // directives and other things that were not, each of which a comment tells about
	Different   int // those that mean something else here, likewise
}

// TranslateFile translates one file. Its errors wrap ErrNothing where the text holds no
// job, and are of kind roost.Invalid where it is no text that could be read.
func TranslateFile(src []byte, opts SourceOptions) (TranslatedFile, error) {
	text, err := checkReadable(src)
	if err != nil {
		return TranslatedFile{}, err
	}
	from := opts.From
	if from == "" {
		if from = detectDialect(text); from == "" {
			return TranslatedFile{}, &translateError{ErrNothing,
				"no line begins with #SBATCH or #PBS, and there is no queue command of HTCondor: say with --from " +
					"what it is"}
		}
	}
	t := &fileTranslation{from: from, file: opts.Name}
	switch from {
	case Slurm:
		err = t.translateSlurm(text)
	case PBS, Torque:
		err = t.translatePBS(text)
	case Condor:
		err = t.translateCondor(text)
	default:
		return TranslatedFile{}, &translateError{roost.Usage,
			fmt.Sprintf("%q is no dialect: there are %s", string(from), strings.Join(Dialects(), ", "))}
	}
	if err != nil {
		return TranslatedFile{}, err
	}
	return t.verify()
}

// fileTranslation is the state of translating one file.
type fileTranslation struct {
	from    Dialect
	file    string
	jobs    []*jobBlock
	notes   []lineNote
	carried int
	request requestSize
}

// noteLost notes a line that could not be carried over, and why or what to do instead.
// Line 0 is the file as a whole.
func (t *fileTranslation) noteLost(line int, source, why string) { t.addNote(line, source, why, true) }

// noteDifference notes something that means something else here.
func (t *fileTranslation) noteDifference(line int, source, why string) {
	t.addNote(line, source, why, false)
}

func (t *fileTranslation) addNote(line int, source, why string, lost bool) {
	for _, n := range t.notes {
		if n.line == line && n.reason == why {
			return
		}
	}
	t.notes = append(t.notes, lineNote{line, source, why, lost})
}

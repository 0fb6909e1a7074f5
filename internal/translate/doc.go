// Package translate turns jobs of other batch systems into job files in HCL: scripts of
// PBS (OpenPBS and Torque) and Slurm, and submit descriptions of HTCondor.
//
//	text ──▶ directives ──▶ job (settings, script, notes) ──▶ HCL ──▶ internal/submit
//	                                   ▲                                   │
//	                                   └──── what it refuses: a note ◀─────┘
//
// The commands of a script are not changed. Whatever has no counterpart, or a slightly
// different meaning, becomes a comment with its line and with advice; nothing is dropped
// silently. Variables of the other system that the script reads are set under the same
// names, so the script works unchanged where that is possible.
//
// The result is parsed by internal/submit before it is returned, and a setting that is
// refused there becomes a comment, too: the text always parses. The sources are the
// manuals: sbatch(1) of Slurm 24.11, qsub(1B) of OpenPBS and Torque, condor_submit(1).
//
// The package is pure.
package translate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// Dialect is a language that can be translated.
type Dialect string

// The dialects. Scripts of Torque are recognized by what only Torque has; most mean the
// same in OpenPBS.
const (
	PBS    Dialect = "pbs"
	Torque Dialect = "torque"
	Slurm  Dialect = "slurm"
	Condor Dialect = "condor"
)

// Dialects returns the names of all dialects.
func Dialects() []string {
	return []string{string(PBS), string(Torque), string(Slurm), string(Condor)}
}

// displayName returns the usual name of the system.
func (d Dialect) displayName() string {
	return map[Dialect]string{PBS: "PBS", Torque: "Torque", Slurm: "Slurm", Condor: "HTCondor"}[d]
}

// MaxSize bounds the text to translate, in bytes.
const MaxSize = 1 << 20

// ErrNothing is the error of TranslateFile for a text without anything to translate.
var ErrNothing = errors.New("there is nothing to translate")

// translateError is an error with a text for users and a kind.
type translateError struct {
	kind error // ErrNothing or a roost.ErrorKind
	text string
}

func (e *translateError) Error() string { return e.text }
func (e *translateError) Unwrap() error { return e.kind }

func nothingError(text string) error { return &translateError{ErrNothing, text} }

func unreadableError(line int, text string) error {
	return &translateError{roost.Invalid, fmt.Sprintf("line %d: %s", line, text)}
}

// TranslatedFile is the resulting job file.
type TranslatedFile struct {
	Text        string // HCL
	From        Dialect
	Jobs        int // number of jobs in it
	CarriedOver int // number of directives that were carried over
	Lost        int // number of directives and other things that were not; a comment explains each
	Different   int // number of those with another meaning here; a comment explains each
	Notes       []Note
	// by job, the rows that its for_each lacks, see SourceOptions.SeparateItems
	Items map[string]*jobspec.ItemTable
	// columns of SourceOptions.Nodes that have to be the same for all nodes of one call.
	// With any, nothing else here means anything
	Needed  []string
	origins []lineOrigin
}

// lineOrigin says where some lines of the result come from.
type lineOrigin struct {
	from, to int
	origin   Note
}

// Origin returns the line of the original that a line of Text comes from.
func (f *TranslatedFile) Origin(line int) (Note, bool) {
	for _, o := range f.origins {
		if line >= o.from && line <= o.to {
			return o.origin, true
		}
	}
	return Note{}, false
}

// TranslateFile translates one file. Its errors wrap ErrNothing if the text has no job,
// and are of kind roost.Invalid if it is no readable text.
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
	t := &fileTranslation{from: from, options: opts, file: opts.Name}
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
	if len(t.needed) > 0 {
		return TranslatedFile{Needed: t.needed}, nil
	}
	t.passVariables()
	return t.verify()
}

// passVariables makes the variables of nodes environment variables of a script.
func (t *fileTranslation) passVariables() {
	if t.options.Nodes == nil || t.from == Condor {
		return
	}
	for _, name := range t.options.Nodes.Names {
		for _, j := range t.jobs {
			j.addToMap("environment", name, quotedExpr("var."+name))
		}
	}
}

// quotedExpr is the source of a text that is the value of an expression.
func quotedExpr(expr string) string { return templateText{{expr: expr}}.hclSource() }

// needNodes records the columns of nodes in a text that has to be the same for all. It
// reports whether there are any.
func (t *fileTranslation) needNodes(text templateText) bool {
	found := false
	for _, p := range text {
		name, ok := strings.CutPrefix(p.expr, memberPrefix)
		if !ok || t.options.Nodes == nil {
			continue
		}
		if _, ok = t.options.Nodes.Column(name); !ok {
			continue
		}
		if found = true; !slices.Contains(t.needed, name) {
			t.needed = append(t.needed, name)
		}
	}
	return found
}

// fileTranslation is the state of translating one file.
type fileTranslation struct {
	from    Dialect
	options SourceOptions
	file    string
	jobs    []*jobBlock
	notes   []Note
	carried int
	request requestSize
	needed  []string // see TranslatedFile.Needed
	// the included file that is being read; empty: the file itself
	included string
}

// noteLost records a line that could not be carried over, and why or what to do instead.
// Line 0 is the file as a whole.
func (t *fileTranslation) noteLost(line int, source, why string) {
	t.addNote(Note{Line: line, Source: source, Reason: why, Kind: Lost})
}

// noteDifference records something that has another meaning here.
func (t *fileTranslation) noteDifference(line int, source, why string) {
	t.addNote(Note{Line: line, Source: source, Reason: why, Kind: Different})
}

// noteMistake records a line that the other system refuses, too.
func (t *fileTranslation) noteMistake(line int, source, why string) {
	t.addNote(Note{Line: line, Source: source, Reason: why, Kind: Mistake})
}

func (t *fileTranslation) addNote(n Note) {
	if n.File == "" {
		n.File = t.included
	}
	for _, old := range t.notes {
		if old.File == n.File && old.Line == n.Line && old.Reason == n.Reason {
			return
		}
	}
	t.notes = append(t.notes, n)
}

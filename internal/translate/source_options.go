package translate

import (
	"time"

	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// SourceOptions describes the text to translate. All but Name and From is for submit
// descriptions of HTCondor.
type SourceOptions struct {
	Name string  // file name as the user wrote it; empty for standard input
	From Dialect // empty: detected from the text

	Files     jobspec.FileAccess // for included files and files of items; nil: none is read
	Dir, Home string             // what relative names, and ~, refer to
	Environ   []string           // NAME=VALUE for $ENV(NAME); nil: the environment is not known
	Now       time.Time          // for $(YEAR) and the like; zero: the time is not known
	Seed      uint64             // of $RANDOM_INTEGER and $RANDOM_CHOICE

	Macros []string // NAME=VALUE, set before the first line
	Append []string // lines that are read in front of each queue command
	// the arguments of a queue command behind the last line if the text has none, such as
	// "5"; empty: such a text is an error
	DefaultQueue string

	// The items of queue commands are in TranslatedFile.Items, and not in the text. It is
	// shorter then, and needs no second look at files.
	SeparateItems bool

	// What differs between the nodes of a flow: a row for each node. Macros and Append
	// refer to it by Reference. The rows of Items are then those of one node after the
	// other. A script of another system has it as environment variables.
	Nodes *jobspec.ItemTable
}

// Reference returns what stands for a column of SourceOptions.Nodes in the value of a
// macro.
func Reference(column string) string { return exprMark + memberPrefix + column + exprMark }

// NoteKind says how serious a note is.
type NoteKind uint8

// The kinds of notes.
const (
	Different NoteKind = iota // it has another meaning here
	Lost                      // it has no counterpart here
	Mistake                   // it is wrong in the other system, too
)

// Note is a note for the user about a line of the original.
type Note struct {
	File   string // an included file; empty: the file itself
	Line   int    // 0: none
	Source string // the line
	Reason string
	Kind   NoteKind
}

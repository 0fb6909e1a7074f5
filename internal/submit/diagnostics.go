package submit

import (
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/roost-batch/roost"
)

// diagnosticExtra is the Extra field of this package's diagnostics.
type diagnosticExtra struct {
	job  string          // job that the place is in
	kind roost.ErrorKind // Invalid, or NoInput for a missing file
	// the variable that has to be the same for all jobs; empty: none
	needs string
}

// newDiagnostic returns a diagnostic. The summary says what is wrong, and the detail why
// and how to fix it.
func newDiagnostic(at *hcl.Range, summary, detail string) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: at,
		Extra: &diagnosticExtra{kind: roost.Invalid}}
}

// warnOf reports what is allowed and hardly meant.
func warnOf(p *fileParser, at hcl.Range, summary, detail string) {
	d := newDiagnostic(&at, summary, detail)
	d.Severity = hcl.DiagWarning
	p.report(d)
}

// missingFileDiagnostic returns the diagnostic of a file that is missing or cannot be
// read.
func missingFileDiagnostic(at *hcl.Range, summary, detail string) *hcl.Diagnostic {
	d := newDiagnostic(at, summary, detail)
	d.Extra = &diagnosticExtra{kind: roost.NoInput}
	return d
}

// ExitKind returns the kind of error of some diagnostics. It is NoInput if the only
// problems are files that are missing or cannot be read, Invalid for any others, and 0
// without errors.
func ExitKind(diags hcl.Diagnostics) roost.ErrorKind {
	kind := roost.ErrorKind(0)
	for _, d := range diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		if n, ok := d.Extra.(*diagnosticExtra); ok && n.kind == roost.NoInput {
			kind = roost.NoInput
			continue
		}
		return roost.Invalid
	}
	return kind
}

// hclWordings replaces hcl's texts of frequent mistakes; an empty detail leaves hcl's.
var hclWordings = map[string]struct{ summary, detail string }{
	"Invalid multi-line string": {"this text has no closing quote",
		"The line ends before the text does. Put a \" at its end, or write text of several lines as\n\n  script " +
			"= <<-END\n    first line\n  END"},
	"Unterminated template string": {"this text has no closing quote",
		"The file ends before the text does. Put a \" at its end."},
	"Unclosed configuration block": {"this block is never closed",
		"The file ends before the block does. Put a } on a line of its own behind its last line."},
	"Unclosed template interpolation sequence": {"a ${ has no closing }",
		"Close it, or write $${ for the two characters themselves."},
	"Attribute redefined": {"this is set twice", ""},
	"Missing newline after argument": {"there is more on this line than one setting",
		"Write one setting a line. A text is written in quotes, and so is a size: memory = \"4GiB\"."},
	"Invalid character": {"this character has no meaning here", ""},
	"Invalid single-argument block definition": {"this block is written on one line with several settings",
		"A block on one line holds a single setting. Put each on a line of its own."},
	"Unbalanced parentheses": {"a parenthesis is not closed", ""},
	"Unterminated tuple constructor expression": {"a [ has no closing ]",
		"The file ends, or a new setting begins, before the list is closed. Put a ] behind its last element."},
	"Missing item separator": {"two elements of a list have no comma between them",
		"Put a , behind each element, or the ] that closes the list."},
	"Unterminated object constructor expression": {"a { has no closing }", "Put a } behind the last element."},
	"Missing attribute separator": {"two elements have neither a comma nor a new line between them",
		"Put a , between them, or each on a line of its own."},
	"Invalid expression": {"a value is expected here",
		"After the = comes a number, true, false, a \"text\", a [list], a {map} or an expression. A text has to be " +
			"in double quotes."},
	"Unterminated function call": {"the parenthesis of this function call is not closed",
		"Put a ) behind its last argument."},
	"Missing argument separator": {"two arguments have no comma between them",
		"Put a , between them, or the ) that closes the call."},
	"Argument or block definition required": {"a setting or a block is expected here",
		"Write a setting as name = value, and a job as job \"name\" { … }."},
	"Invalid block definition": {"this is neither a setting nor a block",
		"Write a setting as name = value, and a job as job \"name\" { … } with the { on the same line."},
	"Invalid argument name": {"a name is not written in quotes here",
		"Write a setting as name = value."},
	"Invalid escape sequence": {"this escape sequence is not known",
		"Known are \\n, \\r, \\t, \\\", \\\\, \\uNNNN and \\UNNNNNNNN. For a backslash itself write \\\\."},
	"Not enough function arguments":         {"an argument is missing", ""},
	"Too many function arguments":           {"there are too many arguments", ""},
	"Invalid function argument":             {"this argument does not fit the function", ""},
	"Error in function call":                {"the function could not do this", ""},
	"Invalid operand":                       {"this operator does not work on such a value", ""},
	"Invalid index":                         {"there is no such element", ""},
	"Invalid template interpolation value":  {"this value cannot be put into a text", ""},
	"Iteration over non-iterable value":     {"for cannot iterate over such a value", ""},
	"Incorrect condition type":              {"a condition has to be true or false", ""},
	"Unsupported attribute":                 {"there is no such attribute", ""},
	"Inconsistent conditional result types": {"the two results of this condition are of different types", ""},
}

// rewordDiagnostic replaces the text of a diagnostic of hcl by this package's own.
func rewordDiagnostic(d *hcl.Diagnostic) {
	if _, ours := d.Extra.(*diagnosticExtra); ours {
		return
	}
	if w, ok := hclWordings[d.Summary]; ok {
		d.Summary = w.summary
		if w.detail != "" {
			d.Detail = w.detail
		}
	} else if d.Summary != "" {
		d.Summary = strings.ToLower(d.Summary[:1]) + d.Summary[1:]
	}
	d.Extra = &diagnosticExtra{kind: roost.Invalid}
}

// finishDiagnostics completes the diagnostics of a file. It rewords them, adds the job of
// each, leaves one for each place in the order of the file, and bounds their number.
func (p *fileParser) finishDiagnostics() hcl.Diagnostics {
	sortByPlace(p.diags)
	var mergedDiags hcl.Diagnostics
	for _, d := range p.diags {
		rewordDiagnostic(d)
		if n := len(mergedDiags); n > 0 && d.Subject != nil && mergedDiags[n-1].Subject != nil &&
			*d.Subject == *mergedDiags[n-1].Subject {
			continue
		}
		if d.Subject != nil {
			d.Extra.(*diagnosticExtra).job = p.jobAtOffset(d.Subject.Start.Byte)
		}
		if mergedDiags = append(mergedDiags, d); len(mergedDiags) == maxFailures {
			break
		}
	}
	return mergedDiags
}

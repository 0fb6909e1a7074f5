package dag

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/suggest"
)

// fail reports a mistake at the last word of the line.
func (p *fileParser) fail(summary, detail string) {
	p.report(Diagnostic{Summary: summary, Detail: detail})
}

// failMissing reports at the last word that a file is missing.
func (p *fileParser) failMissing(summary, detail string) {
	p.report(Diagnostic{Summary: summary, Detail: detail, IsMissing: true})
}

// warn reports at the last word what is allowed and hardly meant.
func (p *fileParser) warn(summary, detail string) {
	p.report(Diagnostic{Summary: summary, Detail: detail, IsWarning: true})
}

// maxSource bounds the part of a line that a diagnostic has.
const maxSource = 2000

// report adds a diagnostic about the last word. Words after a quote without an end are
// not the user's mistake.
func (p *fileParser) report(d Diagnostic) {
	switch {
	case p.pass == 2 && p.command != nil && p.command.defines != nil: // the first pass has reported it
		return
	case p.lex.unclosed && d.Summary != unclosedQuote:
		return
	}
	d.File = p.name
	p.locate(&d)
	if p.command != nil {
		d.Command = p.command.displayName()
	}
	p.diags.add(int(p.number), d)
}

const unclosedQuote = "this text has no closing quote"

// reportUnclosed reports a quote without an end. What else is wrong with the line may
// come from it.
func (p *fileParser) reportUnclosed() {
	p.lex.start, p.lex.end = p.lex.openAt, len(p.line)
	p.fail(unclosedQuote, "The line ends before the text does. Put the same quote at its end, or a backslash before "+
		"a quote that belongs to the text.")
}

// failSyntax reports a mistake whose remedy is the syntax of the command.
func (p *fileParser) failSyntax(format string, args ...any) {
	p.fail(fmt.Sprintf(format, args...), "Write: "+p.command.syntax)
}

// word returns the next word. Where there is none it reports that what it should be is
// missing.
func (p *fileParser) word(what string) ([]byte, bool) {
	word, ok := p.lex.next()
	if !ok {
		p.failSyntax("%s has no %s", p.command.displayName(), what)
	}
	return word, ok
}

// end reports whether the line ends here, and what comes too much where it does not.
func (p *fileParser) end() bool {
	word, more := p.lex.next()
	if more {
		p.failSyntax("%s is one word too many", quote(string(word)))
	}
	return !more
}

// integer returns the next word as a whole number between two bounds.
func (p *fileParser) integer(what string, least, most int) (int, bool) {
	word, ok := p.word(what)
	if !ok {
		return 0, false
	}
	return p.integerOf(word, what, least, most)
}

func (p *fileParser) integerOf(word []byte, what string, least, most int) (int, bool) {
	n, err := strconv.Atoi(string(word))
	if err != nil || n < least || n > most {
		bounds := fmt.Sprintf("between %d and %d", least, most)
		switch {
		case least == math.MinInt32 && most == math.MaxInt32:
			bounds = "such as 3"
		case most == math.MaxInt32:
			bounds = fmt.Sprintf("of at least %d", least)
		}
		p.fail(fmt.Sprintf("%s is no %s", quote(string(word)), what),
			fmt.Sprintf("It has to be a whole number %s. Write: %s", bounds, p.command.syntax))
		return 0, false
	}
	return n, true
}

// quote puts a text of a user between quotes, and shortens it.
func quote(text string) string {
	const most = 100
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return strconv.Quote(text)
}

// nearestName is the known name that a word was perhaps meant to be.
func nearestName(word []byte, known []string) string {
	if len(word) > maxCommandName {
		return ""
	}
	return suggest.Nearest(string(word), known)
}

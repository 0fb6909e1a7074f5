package classad

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/lazyregexp"
)

// formatClassads formats files: prints them, rewrites them, or says which would change.
func formatClassads(c *frame.Invocation, files []string) error {
	write, check := c.Flag("write"), c.Flag("check")
	if write && check {
		return frame.WithHint(frame.UsageErrorf("--write and --check do not go together"), "--check changes nothing")
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	f := &adFormatter{diagnostics: diagnostics{Invocation: c}}
	for _, file := range files {
		if write && file == "-" {
			return frame.WithHint(frame.UsageErrorf("standard input cannot be rewritten"),
				"leave --write out, or name files")
		}
		src, err := readSource(c, file)
		if err != nil {
			return err
		}
		text, commented, ok := f.format(src)
		switch {
		case !ok:
			f.hasErrors = true
		case write && commented:
			f.reportFailure(src.name, "it has comments, which would be lost, and is left as it is")
			f.hasErrors = true
		case write && text != src.text:
			if err := frame.ReplaceFile(c.AbsolutePath(file), text); err != nil {
				return err
			}
		case write:
		case check && commented:
			f.reportFailure(src.name, "it has comments, and cannot be formatted")
		case check && text != src.text:
			fmt.Fprintln(c.Stdout, src.name)
			f.hasDifferences = true
		case !check:
			fmt.Fprint(c.Stdout, text)
			if commented {
				f.reportFailure(src.name, "its comments are lost")
			}
		}
	}
	switch {
	case f.hasErrors:
		return frame.ExitError(roost.Invalid.ExitCode())
	case f.hasDifferences:
		return frame.ExitError(1)
	}
	return nil
}

// adFormatter is what a call has found out so far.
type adFormatter struct {
	diagnostics
	hasErrors, hasDifferences bool
}

func (f *adFormatter) reportFailure(name, why string) {
	fmt.Fprintf(f.Stderr, "%s: %s\n", document.PrintableText(name), why)
}

// oldAttribute is how an attribute in old syntax begins. A text that is wrong in every
// syntax was meant to be old if it has one: no expression has a single sign of equality
// outside of brackets.
var oldAttribute = lazyregexp.New(`(?m)^[ \t]*(#|[A-Za-z_][A-Za-z0-9_]*[ \t]*=([^=?!]|$))`)

// format is a file's text in its own syntax, formatted. A file holds ads, or one
// expression. What is wrong is shown.
func (f *adFormatter) format(src sourceText) (text string, commented, ok bool) {
	syntax := detectSyntax(src.text)
	if strings.TrimSpace(src.text) == "" {
		return "", false, true
	}
	if text, commented, err := classad.Format(src.text); err == nil && syntax != jsonSyntax {
		return text, commented, true
	} else if _, wrong := classad.ParseOld(src.text); wrong != nil && syntax == oldSyntax &&
		!oldAttribute().MatchString(src.text) {
		f.showProblem(src, 0, err)
		return "", false, false
	}
	var b strings.Builder
	pieces, err := syntax.splitAds(src.text)
	if err != nil {
		if text, commented, err := classad.Format(src.text); err == nil { // a list, which begins like JSON
			return text, commented, true
		}
		f.showProblem(src, 0, err)
		return "", false, false
	}
	if syntax == oldSyntax {
		pieces = []textSpan{{0, len(src.text)}}
	}
	ok = true
	for _, p := range pieces {
		text, lost, errs := syntax.format(src.text[p.from:p.to])
		for _, err := range errs {
			f.showProblem(src, p.from, err)
			ok = false
		}
		b.WriteString(text)
		commented = commented || lost
	}
	switch begin := skipBlanks(src.text, 0); syntax {
	case newSyntax:
		return b.String(), commented || hasCommentBetween(src.text, pieces), ok
	case jsonSyntax:
		if src.text[begin] == '[' && ok {
			b.Reset()
			b.WriteString(indentJSON(src.text[begin:]))
		}
		return b.String(), strings.HasPrefix(strings.TrimSpace(src.text), "/"), ok
	}
	return b.String(), commented, ok
}

// indentJSON is JSON with a line for each member; the text is known to be right.
func indentJSON(text string) string {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), "", "  "); err != nil {
		return text
	}
	return strings.TrimSpace(b.String()) + "\n"
}

// format formats one ad, or in old syntax a whole file.
func (s adSyntax) format(text string) (out string, commented bool, errs []error) {
	var err error
	switch s {
	case newSyntax:
		out, commented, err = classad.Format(text)
	case oldSyntax:
		if out, commented, err = classad.FormatOld(text); err != nil {
			return "", false, oldSyntaxErrors(text)
		}
	case jsonSyntax:
		_, errs = s.parseAd(text)
		return indentJSON(text), false, errs
	}
	if err != nil {
		return "", false, []error{err}
	}
	return out, commented, nil
}

// hasCommentBetween says whether something else than blanks stands between the ads of a
// file.
func hasCommentBetween(text string, pieces []textSpan) bool {
	from := 0
	for _, p := range append(pieces, textSpan{len(text), len(text)}) {
		if strings.TrimSpace(text[from:p.from]) != "" {
			return true
		}
		from = p.to
	}
	return false
}

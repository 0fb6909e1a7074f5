package classad

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
)

// maxAdFile bounds a file of ads: an ad of each of some ten thousand machines.
const maxAdFile = 256 << 20

// sourceText is a text of the user's, and what to call it.
type sourceText struct{ name, text string }

// readSource reads a file, or standard input.
func readSource(c *frame.Invocation, file string) (sourceText, error) {
	name, read := file, func() ([]byte, error) { return frame.UserFiles{}.Read(c.AbsolutePath(file), maxAdFile) }
	if file == "-" {
		name, read = "standard input", func() ([]byte, error) {
			return frame.ReadLimited(c.Stdin, "standard input", maxAdFile)
		}
	}
	text, err := read()
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return sourceText{}, inputError(name, err)
	case err != nil:
		return sourceText{}, frame.KindErrorf(roost.Invalid, "%v", err)
	}
	return sourceText{name, strings.TrimPrefix(string(text), "\ufeff")}, nil
}

// diagnostics shows what is wrong with texts of the user's.
type diagnostics struct {
	*frame.Invocation
	shownCount int
}

// readAd reads a file that holds one ad. In old syntax empty lines may stand within it,
// as long as no attribute is set on both sides of one; then they are more likely two ads.
func readAd(c *frame.Invocation, file string) (*classad.Ad, error) {
	src, err := readSource(c, file)
	if err != nil {
		return nil, err
	}
	ads, syntax, wrong := (&diagnostics{Invocation: c}).parseAds(src)
	if wrong > 0 {
		return nil, frame.ExitError(roost.Invalid.ExitCode())
	}
	ad := classad.New()
	for i, next := range ads {
		for name := range next.All() {
			if _, twice := ad.Lookup(name); twice || i > 0 && syntax != oldSyntax {
				return nil, frame.WithHint(frame.KindErrorf(roost.Invalid, "%s: it holds %d ads, and one is wanted",
					src.name,
					len(ads)), "leave one in it")
			}
		}
		ad.Update(next)
	}
	return ad, nil
}

// parseAds reads all ads of a text, shows every mistake, and counts the ads that have
// one.
func (m *diagnostics) parseAds(src sourceText) (ads []*classad.Ad, syntax adSyntax, wrong int) {
	syntax = detectSyntax(src.text)
	pieces, err := syntax.splitAds(src.text)
	if err != nil {
		m.showProblem(src, 0, err)
		wrong++
	}
	for _, p := range pieces {
		ad, errs := syntax.parseAd(src.text[p.from:p.to])
		if len(errs) == 0 {
			ads = append(ads, ad)
			continue
		}
		wrong++
		for _, err := range errs {
			m.showProblem(src, p.from, err)
		}
	}
	return ads, syntax, wrong
}

// showProblem prints one mistake in the text that begins at from: cause, place, line, and
// a caret.
func (m *diagnostics) showProblem(src sourceText, from int, err error) {
	if m.shownCount++; m.shownCount > 1 {
		fmt.Fprintln(m.Stderr)
	}
	offset, msg := from, err.Error()
	var syntax *classad.SyntaxError
	if errors.As(err, &syntax) {
		offset, msg = from+syntax.Offset, syntax.Msg
	}
	offset = min(offset, len(src.text))
	fmt.Fprintf(m.Stderr, "%s%s\n\n", m.ErrScreen.ColourText("1;31", "Error: "),
		m.ErrScreen.ColourText(frame.Bold, document.PrintableText(msg)))
	before := src.text[:offset]
	start := strings.LastIndexByte(before, '\n') + 1
	line, column := 1+strings.Count(before, "\n"), 1+utf8.RuneCountInString(before[start:])
	fmt.Fprintf(m.Stderr, "  in %s, line %d, column %d:\n", document.PrintableText(src.name), line, column)
	rest, _, _ := strings.Cut(src.text[offset:], "\n")
	showSourceLine(m.Invocation, line, src.text[start:offset], rest)
}

// Of a long line no more is shown than these characters before and behind the caret.
const (
	maxShownBefore = 60
	maxShownAfter  = 40
)

// showSourceLine prints a line of a text, cut in two where the caret goes.
func showSourceLine(c *frame.Invocation, number int, lead, rest string) {
	shown := func(s string) []rune {
		return []rune(document.PrintableText(strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\t", " ")))
	}
	if most := 8 * (maxShownBefore + 1); len(lead) > most {
		lead = lead[len(lead)-most:]
	}
	if most := 8 * (maxShownAfter + 1); len(rest) > most {
		rest = rest[:most]
	}
	left, right := shown(lead), shown(strings.TrimRight(rest, "\r"))
	if len(left) > maxShownBefore {
		left = append([]rune("…"), left[len(left)-maxShownBefore:]...)
	}
	if len(right) > maxShownAfter {
		right = append(right[:maxShownAfter:maxShownAfter], '…')
	}
	prefix := fmt.Sprintf("%4d: ", number)
	fmt.Fprintf(c.Stderr, "%s%s%s\n", prefix, string(left), string(right))
	fmt.Fprintf(c.Stderr, "%s%s\n", strings.Repeat(" ", len(prefix)+len(left)), c.ErrScreen.ColourText("1;31", "^"))
}

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// maxAdFile bounds a file of ads: an ad of each of some ten thousand machines.
const maxAdFile = 256 << 20

// source is a text of the user's, and what to call it.
type source struct{ name, text string }

// adSource reads a file, or standard input.
func (c *call) adSource(file string) (source, error) {
	name, read := file, func() ([]byte, error) { return userFiles{}.Read(c.path(file), maxAdFile) }
	if file == "-" {
		name, read = "standard input", func() ([]byte, error) { return readBounded(c.stdin, "standard input", maxAdFile) }
	}
	text, err := read()
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return source{}, noInput(name, err)
	case err != nil:
		return source{}, problem(roost.Invalid, "%v", err)
	}
	return source{name, strings.TrimPrefix(string(text), "\ufeff")}, nil
}

// mistakes shows what is wrong with texts of the user's.
type mistakes struct {
	*call
	shown int
}

// oneAd reads a file that holds one ad. In old syntax empty lines may stand within it, as long as no attribute is set on both sides of
// one; then they are more likely two ads.
func (c *call) oneAd(file string) (*classad.Ad, error) {
	src, err := c.adSource(file)
	if err != nil {
		return nil, err
	}
	ads, syntax, wrong := (&mistakes{call: c}).adsOf(src)
	if wrong > 0 {
		return nil, exit(roost.Invalid.ExitCode())
	}
	ad := classad.New()
	for i, next := range ads {
		for name := range next.All() {
			if _, twice := ad.Lookup(name); twice || i > 0 && syntax != oldSyntax {
				return nil, advise(problem(roost.Invalid, "%s: it holds %d ads, and one is wanted", src.name, len(ads)), "leave one in it")
			}
		}
		ad.Update(next)
	}
	return ad, nil
}

// adsOf reads all ads of a text, shows every mistake, and counts the ads that have one.
func (m *mistakes) adsOf(src source) (ads []*classad.Ad, syntax adSyntax, wrong int) {
	syntax = syntaxOf(src.text)
	pieces, err := syntax.split(src.text)
	if err != nil {
		m.show(src, 0, err)
		wrong++
	}
	for _, p := range pieces {
		ad, errs := syntax.parse(src.text[p.from:p.to])
		if len(errs) == 0 {
			ads = append(ads, ad)
			continue
		}
		wrong++
		for _, err := range errs {
			m.show(src, p.from, err)
		}
	}
	return ads, syntax, wrong
}

// show prints one mistake, where the part of the text that begins at from was read: what it is, its place, the line, and a caret.
func (m *mistakes) show(src source, from int, err error) {
	if m.shown++; m.shown > 1 {
		fmt.Fprintln(m.stderr)
	}
	offset, msg := from, err.Error()
	var syntax *classad.SyntaxError
	if errors.As(err, &syntax) {
		offset, msg = from+syntax.Offset, syntax.Msg
	}
	offset = min(offset, len(src.text))
	fmt.Fprintf(m.stderr, "%s%s\n\n", m.err.paint("1;31", "Error: "), m.err.paint(bold, printable(msg)))
	before := src.text[:offset]
	start := strings.LastIndexByte(before, '\n') + 1
	line, column := 1+strings.Count(before, "\n"), 1+utf8.RuneCountInString(before[start:])
	fmt.Fprintf(m.stderr, "  in %s, line %d, column %d:\n", printable(src.name), line, column)
	rest, _, _ := strings.Cut(src.text[offset:], "\n")
	m.showLine(line, src.text[start:offset], rest)
}

// Of a long line no more is shown than these characters before and behind the caret.
const (
	shownBefore = 60
	shownBehind = 40
)

// showLine prints a line of a text, cut in two where the caret goes.
func (c *call) showLine(number int, lead, rest string) {
	shown := func(s string) []rune {
		return []rune(printable(strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\t", " ")))
	}
	if most := 8 * (shownBefore + 1); len(lead) > most {
		lead = lead[len(lead)-most:]
	}
	if most := 8 * (shownBehind + 1); len(rest) > most {
		rest = rest[:most]
	}
	left, right := shown(lead), shown(strings.TrimRight(rest, "\r"))
	if len(left) > shownBefore {
		left = append([]rune("…"), left[len(left)-shownBefore:]...)
	}
	if len(right) > shownBehind {
		right = append(right[:shownBehind:shownBehind], '…')
	}
	prefix := fmt.Sprintf("%4d: ", number)
	fmt.Fprintf(c.stderr, "%s%s%s\n", prefix, string(left), string(right))
	fmt.Fprintf(c.stderr, "%s%s\n", strings.Repeat(" ", len(prefix)+len(left)), c.err.paint("1;31", "^"))
}

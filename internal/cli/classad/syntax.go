package classad

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// adSyntax is one of the ways to write an ad.
type adSyntax uint8

const (
	newSyntax  adSyntax = iota // [ a = 1 ]
	oldSyntax                  // a = 1, an attribute a line
	jsonSyntax                 // { "a": 1 }
)

// detectSyntax tells from its beginning how a text is written. A list of ads in JSON
// begins with a bracket as well, but an ad in new syntax has no brace there.
func detectSyntax(text string) adSyntax {
	text = text[skipBlanks(text, 0):]
	switch {
	case strings.HasPrefix(text, "{"):
		return jsonSyntax
	case !strings.HasPrefix(text, "["):
		return oldSyntax
	case strings.HasPrefix(strings.TrimLeft(text[1:], " \t\r\n"), "{"):
		return jsonSyntax
	}
	return newSyntax
}

// textSpan is the part of a text that should be an ad.
type textSpan struct{ from, to int }

// splitAds finds where each ad of a text begins and ends. The pieces before an error
// count.
func (s adSyntax) splitAds(text string) ([]textSpan, error) {
	switch s {
	case newSyntax:
		return splitNew(text), nil
	case oldSyntax:
		return splitOld(text), nil
	}
	return splitJSON(text)
}

// parseAd reads one ad, or says all that is wrong with it.
func (s adSyntax) parseAd(text string) (ad *classad.Ad, errs []error) {
	var err error
	switch s {
	case newSyntax:
		ad, err = classad.Parse(text)
	case oldSyntax:
		if ad, err = classad.ParseOld(text); err != nil {
			return nil, oldSyntaxErrors(text)
		}
	case jsonSyntax:
		ad = classad.New()
		err = jsonErrorOffset(ad.UnmarshalJSON([]byte(text)))
	}
	if err != nil {
		errs = append(errs, err)
	}
	return ad, errs
}

// splitNew cuts behind each bracket that closes an ad. Text that is no ad belongs to the
// ad behind it, which is wrong then.
func splitNew(text string) (pieces []textSpan) {
	depth, from := 0, skipBlanks(text, 0)
	for i := from; i < len(text); {
		switch text[i] {
		case '"', '\'':
			i = skipQuoted(text, i)
			continue
		case '/':
			if next := skipBlanks(text, i); next > i {
				i = next
				continue
			}
		case '[':
			depth++
		case ']':
			if depth--; depth <= 0 {
				pieces = append(pieces, textSpan{from, i + 1})
				i = skipBlanks(text, i+1)
				from, depth = i, 0
				continue
			}
		}
		i++
	}
	if from < len(text) {
		pieces = append(pieces, textSpan{from, len(text)})
	}
	return pieces
}

// skipBlanks goes over blanks and comments.
func skipBlanks(text string, i int) int {
	for i < len(text) {
		switch rest := text[i:]; {
		case strings.IndexByte(" \t\n\r\v\f", text[i]) >= 0:
			i++
		case strings.HasPrefix(rest, "//"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				return len(text)
			}
			i += end
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return i
			}
			i += end + 4
		default:
			return i
		}
	}
	return i
}

// skipQuoted goes over a string or a quoted name of new syntax.
func skipQuoted(text string, i int) int {
	quote := text[i]
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case quote:
			return i + 1
		}
	}
	return len(text)
}

// splitOld cuts at lines that hold blanks only.
func splitOld(text string) (pieces []textSpan) {
	from, open := 0, false
	for i := 0; i < len(text); {
		end := len(text)
		if n := strings.IndexByte(text[i:], '\n'); n >= 0 {
			end = i + n + 1
		}
		switch line := strings.TrimSpace(text[i:end]); {
		case line == "":
			if open {
				pieces = append(pieces, textSpan{from, i})
			}
			open = false
		case !open && line[0] != '#':
			from, open = i, true
		}
		i = end
	}
	if open {
		pieces = append(pieces, textSpan{from, len(text)})
	}
	return pieces
}

// oldSyntaxErrors is what is wrong with each line.
func oldSyntaxErrors(text string) (errs []error) {
	for i := 0; i < len(text); {
		end := len(text)
		if n := strings.IndexByte(text[i:], '\n'); n >= 0 {
			end = i + n + 1
		}
		_, err := classad.ParseOld(text[i:end])
		var syntax *classad.SyntaxError
		if errors.As(err, &syntax) {
			moved := *syntax
			moved.Offset += i
			errs = append(errs, &moved)
		}
		i = end
	}
	return errs
}

// splitJSON finds the objects that follow one another, or are the elements of a list.
func splitJSON(text string) (pieces []textSpan, err error) {
	skipped := skipBlanks(text, 0)
	d := json.NewDecoder(strings.NewReader(text[skipped:]))
	list := strings.HasPrefix(text[skipped:], "[")
	if list {
		d.Token()
	}
	for !list || d.More() {
		var one json.RawMessage
		err := d.Decode(&one)
		if errors.Is(err, io.EOF) && !list {
			return pieces, nil
		}
		if err != nil {
			return pieces, jsonErrorAt(text[skipped:], skipped, int(d.InputOffset()), err)
		}
		end := skipped + int(d.InputOffset())
		pieces = append(pieces, textSpan{end - len(one), end})
	}
	if _, err := d.Token(); err != nil {
		return pieces, jsonErrorAt(text[skipped:], skipped, int(d.InputOffset()), err)
	}
	return pieces, nil
}

// jsonErrorAt gives an error of package json its place. The decoder counts from the value
// in which the error is, which begins at from.
func jsonErrorAt(text string, skipped, from int, err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &classad.SyntaxError{Offset: skipped + len(text), Msg: "the JSON is not closed where the text ends"}
	case errors.As(err, &syntax):
		// The place is one behind the character that is wrong.
		rest := bytes.TrimLeft([]byte(text[from:]), ", \t\r\n")
		var any json.RawMessage
		if err := json.NewDecoder(bytes.NewReader(rest)).Decode(&any); errors.As(err, &syntax) {
			from = len(text) - len(rest) + int(syntax.Offset) - 1
		}
		return &classad.SyntaxError{Offset: skipped + from, Msg: syntax.Error()}
	}
	return err
}

// jsonErrorOffset finds the offset in the text of an error about JSON, as in "classad:
// JSON at byte 19: …".
func jsonErrorOffset(err error) error {
	var syntax *classad.SyntaxError
	if err == nil || errors.As(err, &syntax) {
		return err
	}
	at, text := 0, strings.TrimSuffix(err.Error(), ": "+roost.Invalid.Error())
	if n, _ := fmt.Sscanf(text, "classad: JSON at byte %d:", &at); n == 1 {
		text = strings.TrimPrefix(text, fmt.Sprintf("classad: JSON at byte %d: ", at))
	}
	return &classad.SyntaxError{Offset: at, Msg: strings.TrimPrefix(text, "classad: ")}
}

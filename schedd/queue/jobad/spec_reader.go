package jobad

import (
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// SharedSpec is what the queue needs to know of an ad. Jobs whose ads differ only in
// attributes that it does not depend on share one, so it must not be changed.
type SharedSpec struct {
	JobSpec            // without the name, which is each job's own
	Alterations int64  // how often the job was altered
	ArrayIndex  string // the indexes of its tasks, as text; empty: their own numbers
}

// SpecReader reads the texts of ads. A parse costs ten times as much as the rest that a
// restart does for a job, and nearly all jobs ask for what others have asked for. So the
// reader cuts those attributes out of the text that a spec does not depend on, and what
// remains tells it whether it has read such an ad before. It is not safe for concurrent
// use.
type SpecReader struct {
	specs map[string]*SharedSpec // by the remaining text
	key   []byte
}

// maxSharedSpecs bounds how many specs a reader remembers. At the bound it starts again
// with none, and jobs still share what they share.
const maxSharedSpecs = 1 << 12

// NewSpecReader returns a reader that has read nothing.
func NewSpecReader() *SpecReader { return &SpecReader{specs: map[string]*SharedSpec{}} }

// ReadText reads and checks the text of an ad. It returns what the ad shares with others,
// and the name of the job.
func (r *SpecReader) ReadText(text string) (s *SharedSpec, name string, err error) {
	name, attributes, ok := r.cut(text)
	if ok {
		if s = r.specs[string(r.key)]; s != nil {
			return s, name, nil
		}
	}
	ad, err := classad.Parse(text)
	if err != nil {
		return nil, "", err
	}
	p, err := ReadSpec(ad)
	if err != nil {
		return nil, "", err
	}
	s = &SharedSpec{JobSpec: p}
	s.Alterations, _ = ad.Int(roost.AttrAlterations)
	s.ArrayIndex, _ = ad.Str(roost.AttrArrayIndex)
	full := s.Name
	s.Name = ""
	if ok && full == name && ad.Len() == attributes && isClosed(ad) {
		if len(r.specs) >= maxSharedSpecs {
			clear(r.specs)
		}
		r.specs[string(r.key)] = s
	}
	return s, full, nil
}

// ownAttrs are the attributes that a job has for itself, and on which its spec does not
// depend.
var ownAttrs = []string{
	roost.AttrJobID, roost.AttrQDate, roost.AttrOut, roost.AttrErr, roost.AttrIn, roost.AttrArguments,
	roost.AttrEnvironment, roost.AttrSubmitArguments,
}

// cut puts the part of an ad's text into the reader's key on which the spec depends. It
// is false for a text that it cannot take apart without a parse.
func (r *SpecReader) cut(text string) (name string, attributes int, ok bool) {
	r.key = r.key[:0]
	named := false
	rest, ok := strings.CutPrefix(text, "[ ")
	for ok && rest != "]" {
		var attr, value string
		if attr, value, rest, ok = cutAttribute(rest); !ok {
			return "", 0, false
		}
		attributes++
		switch {
		case slices.Contains(ownAttrs, attr):
			continue
		case attr == roost.AttrJobName:
			name, named = value, true
			if name, ok = plainString(value); !ok {
				return "", 0, false
			}
			continue
		case attr == roost.AttrScript: // it matters only whether there is one
			if len(value) <= 2 || value[0] != '"' {
				return "", 0, false
			}
			value = ""
		case attr == roost.AttrPBS:
			value = ""
		}
		r.key = append(append(append(append(r.key, attr...), '='), value...), ';')
	}
	return name, attributes, ok && named
}

// cutAttribute cuts the first attribute off the text of a printed ad. There, attributes
// are written as name = value; with a blank between two, and no semicolon after the last.
func cutAttribute(text string) (name, value, rest string, ok bool) {
	name, text, ok = strings.Cut(text, " = ")
	if !ok || !attributeName(name) {
		return "", "", "", false
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"', '\'':
			if i = closingQuote(text, i); i < 0 {
				return "", "", "", false
			}
		case '[', '{', '(':
			depth++
		case ']', '}', ')':
			if depth == 0 { // of the ad itself
				return name, strings.TrimSuffix(text[:i], " "), text[i:], text[i:] == "]"
			}
			depth--
		case '/':
			if i+1 < len(text) && (text[i+1] == '/' || text[i+1] == '*') { // of a comment
				return "", "", "", false
			}
		case ';':
			if depth == 0 {
				value, rest = text[:i], text[i+1:]
				if rest, ok = strings.CutPrefix(rest, " "); !ok {
					return "", "", "", false
				}
				return name, value, rest, true
			}
		}
	}
	return "", "", "", false
}

// closingQuote returns where the quoted text ends that begins at open, or -1.
func closingQuote(text string, open int) int {
	quote := text[open]
	for i := open + 1; i < len(text); i++ {
		n := strings.IndexByte(text[i:], quote)
		if n < 0 {
			return -1
		}
		i += n
		escapes := 0
		for text[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
	return -1
}

// plainString returns what is between quotes, where that stands for itself.
func plainString(literal string) (string, bool) {
	if len(literal) < 2 || literal[0] != '"' || strings.IndexByte(literal[1:], '"') != len(literal)-2 ||
		strings.IndexByte(literal, '\\') >= 0 {
		return "", false
	}
	return literal[1 : len(literal)-1], true
}

// isClosed reports whether a spec depends on the uncut attributes of its ad alone. An
// expression in them may name one that was cut out, or read the clock.
func isClosed(ad *classad.Ad) bool {
	for name, e := range ad.All() {
		switch {
		case slices.Contains(ownAttrs, name), name == roost.AttrPBS:
			continue
		case name == roost.AttrRequirements, name == roost.AttrRank, name == roost.AttrQueueRequires:
			continue // they are texts, which nobody evaluates here
		}
		if _, literal := e.Literal(); literal {
			continue
		}
		my, target, unscoped := classad.References(e)
		if len(my)+len(target)+len(unscoped) > 0 || strings.Contains(e.String(), "(") {
			return false
		}
	}
	return true
}

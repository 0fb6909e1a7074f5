package names

import (
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// maxEndpoints bounds the endpoints of one machine.
const maxEndpoints = 1024

// splitEndpoints returns the texts of the endpoints in the text of a machine ad. It does
// not parse them, because most are the same as in the ad before. ok is false for text in
// another form than the one that startds write.
func splitEndpoints(ad string) (elements []string, ok bool) {
	if !strings.Contains(ad, roost.AttrEndpoints) {
		return nil, true
	}
	text, ok := classad.ProjectAd(ad, func(name string) bool { return strings.EqualFold(name, roost.AttrEndpoints) })
	if !ok {
		return nil, false
	}
	_, text, found := strings.Cut(text, "=")
	if !found {
		return nil, true
	}
	text = strings.TrimSpace(text)
	list, opened := strings.CutPrefix(strings.TrimSuffix(text, "]"), "{")
	list, closed := strings.CutSuffix(strings.TrimSpace(list), "}")
	if !opened || !closed {
		return nil, false
	}
	for rest := strings.TrimSpace(list); rest != ""; {
		n := elementEnd(rest)
		if n < 0 || len(elements) == maxEndpoints {
			return nil, false
		}
		elements = append(elements, rest[:n])
		rest = strings.TrimSpace(rest[n:])
		if rest == "" {
			break
		}
		if rest, ok = strings.CutPrefix(rest, ","); !ok {
			return nil, false
		}
		rest = strings.TrimSpace(rest)
	}
	return elements, true
}

// elementEnd returns the length of the nested ad at the beginning of text, or -1.
func elementEnd(text string) int {
	if text[0] != '[' {
		return -1
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '\'', '/': // quoted names and comments are not written by startds
			return -1
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

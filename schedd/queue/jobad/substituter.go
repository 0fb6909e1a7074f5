package jobad

import (
	"strings"

	"github.com/roost-batch/roost/classad"
)

// AdSubstituter replaces $(Name) in the attributes of an ad.
type AdSubstituter struct {
	Ad    *classad.Ad
	Value func(name string) string // what is written for $(name)
}

func (m *AdSubstituter) Text(name string) string {
	s, _ := m.Ad.Str(name)
	return m.expand(s)
}

func (m *AdSubstituter) List(name string) []string {
	list, _ := m.Ad.Strings(name)
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = m.expand(s)
	}
	return out
}

// expand replaces $(Name) and $$.
func (m *AdSubstituter) expand(s string) string {
	if strings.IndexByte(s, '$') < 0 {
		return s
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i+1 == len(s) {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		end := strings.IndexByte(s[i:], ')')
		switch {
		case s[i+1] == '$':
			b.WriteByte('$')
			s = s[i+2:]
		case s[i+1] == '(' && end > 0:
			b.WriteString(m.Value(s[i+2 : i+end]))
			s = s[i+end+1:]
		default:
			b.WriteByte('$')
			s = s[i+1:]
		}
	}
}

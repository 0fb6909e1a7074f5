package qsub

import "strings"

// maxWords bounds the words of one directive, as OpenPBS does.
const maxWords = 128

// SplitWords splits a directive as a shell would, without expansions: quotes of both
// kinds, and backslashes.
func SplitWords(s string) (words []string, ok bool) {
	var word strings.Builder
	quote, open := byte(0), false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case c == '"' || c == '\'':
			quote, open = c, true
		case c == '\\' && i+1 < len(s):
			i++
			word.WriteByte(s[i])
			open = true
		case c == ' ' || c == '\t':
			if open {
				words = append(words, word.String())
				word.Reset()
			}
			open = false
		default:
			word.WriteByte(c)
			open = true
		}
	}
	if open {
		words = append(words, word.String())
	}
	return words, quote == 0
}

// SplitList splits at commas that are not in quotes and have no backslash before them. It
// removes the quotes.
func SplitList(s string) []string {
	var out []string
	var part strings.Builder
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == 0 && c == ',':
			out = append(out, part.String())
			part.Reset()
		case c == '\\' && i+1 < len(s) && s[i+1] == ',':
			i++
			part.WriteByte(',')
		default:
			part.WriteByte(c)
		}
	}
	return append(out, part.String())
}

// listItems returns the entries of a list without the blanks around them.
func listItems(s string) []string {
	parts := SplitList(s)
	for i, p := range parts {
		parts[i] = strings.TrimSpace(p)
	}
	return parts
}

// isPlainName reports whether s consists of characters that PBS allows in names.
func isPlainName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+.-") == ""
}

func LookUpVariable(environ []string, name string) (string, bool) {
	for i := len(environ) - 1; i >= 0; i-- {
		if key, value, ok := strings.Cut(environ[i], "="); ok && key == name {
			return value, true
		}
	}
	return "", false
}

package doctor

import (
	"regexp"
	"strings"
	"unicode"
)

// removed replaces what may be a secret.
const removed = "[removed]"

// redactor takes out of texts what may be a secret. It removes too much rather than too
// little: who needs a digest or an id that looks like a key can ask for it.
type redactor struct {
	pem, url, link, header, setting *regexp.Regexp
	word                            *regexp.Regexp
}

func newRedactor() *redactor {
	const names = `[\w.-]*(?:secret|passw|passphrase|token|credential|api_?key|private|cookie|session_?id|` +
		`access_?key|authorization|auth_?key|bearer)[\w.-]*`
	return &redactor{
		// a block without its end is removed, too
		pem: regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*-----.*?(?:-----END [A-Z0-9 ]*-----|\z)`),
		url: regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s/@"']+@`),
		// what follows a # is never sent to a server: links have secrets there
		link:   regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s#"']*)[#?][^\s"']+`),
		header: regexp.MustCompile(`(?i)\b(bearer|basic|negotiate)\s+[\w.~+/=-]{6,}`),
		// NAME = "value", NAME=value, "NAME": "value", --NAME value; and inside
		// quotes, where the rest of the quoted text goes
		setting: regexp.MustCompile(`(?i)(` + names + `\\*["']?\s*(?:[:=]\s*|\s+))` +
			`(\\+["'](?:[^"\\\n]|\\.)*|"(?:[^"\\]|\\.)*"|'[^']*'|[^\s,;"']+)`),
		word: regexp.MustCompile(`[A-Za-z0-9_+=~-]{24,}`),
	}
}

// text returns a text without what may be a secret.
func (r *redactor) text(s string) string {
	s = r.pem.ReplaceAllString(s, removed)
	s = r.url.ReplaceAllString(s, "${1}"+removed+"@")
	s = r.link.ReplaceAllString(s, "${1}#"+removed)
	s = r.header.ReplaceAllString(s, "${1} "+removed)
	s = r.setting.ReplaceAllString(s, "${1}"+removed)
	return r.word.ReplaceAllStringFunc(s, func(w string) string {
		if looksLikeKey(w) {
			return removed
		}
		return w
	})
}

// looksLikeKey reports whether a long word has letters and digits, as keys and digests
// have. A name with numbers at its end is none.
func looksLikeKey(w string) bool {
	letters := strings.IndexFunc(w, unicode.IsLetter) >= 0
	base := strings.TrimRightFunc(w, func(c rune) bool { return unicode.IsDigit(c) || c == '-' })
	return letters && strings.ContainsFunc(base, unicode.IsDigit) ||
		letters && strings.ContainsFunc(w, unicode.IsUpper) && strings.ContainsFunc(w, unicode.IsLower) &&
			mixedCase(w) > len(w)/4
}

// mixedCase counts the changes between upper and lower case, of which words have few.
func mixedCase(w string) (n int) {
	for i := 1; i < len(w); i++ {
		a, b := rune(w[i-1]), rune(w[i])
		if unicode.IsUpper(a) && unicode.IsLower(b) || unicode.IsLower(a) && unicode.IsUpper(b) {
			n++
		}
	}
	return n
}

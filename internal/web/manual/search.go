package manual

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Hit is a place that a search has found.
type Hit struct {
	Page    *Page
	Heading string
	Anchor  string // empty: the beginning of the page
	Tag     string // the option or word that is explained there
	Snippet string // text around the first word that was found
}

// Scores of a hit: what matches in a name counts more than what matches in a text.
const (
	scoreName    = 1000
	scoreTag     = 300
	scoreSummary = 100
	scoreHeading = 30
	scoreText    = 1
)

// maxQuery bounds a query in bytes, and maxWords its words.
const (
	maxQuery = 200
	maxWords = 8
)

// Search finds the places that have all words of a query, the best first.
func (m *Manual) Search(query string, limit int) []Hit {
	words := strings.Fields(strings.ToLower(query[:min(len(query), maxQuery)]))
	words = words[:min(len(words), maxWords)]
	if len(words) == 0 {
		return nil
	}
	type scored struct {
		Hit
		score int
	}
	var found []scored
	for _, p := range m.order {
		if s := matchScore(words, p.Name, scoreName, p.Summary, scoreSummary, "", 0); s > 0 {
			found = append(found, scored{Hit{Page: p, Snippet: p.Summary}, s})
		}
		for i := range p.passages {
			g := &p.passages[i]
			s := matchScore(words, g.tag, scoreTag, g.heading, scoreHeading, g.text, scoreText)
			if s > 0 {
				found = append(found, scored{Hit{p, g.heading, g.anchor, g.tag, snippet(g.text, words[0])}, s})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	hits := make([]Hit, 0, min(limit, len(found)))
	for _, f := range found[:min(limit, len(found))] {
		hits = append(hits, f.Hit)
	}
	return hits
}

// matchScore rates a place by the three texts in which words are found. It is 0 where a
// word is in none of them.
func matchScore(words []string, a string, scoreA int, b string, scoreB int, c string, scoreC int) (sum int) {
	a, b, c = strings.ToLower(a), strings.ToLower(b), strings.ToLower(c)
	for _, w := range words {
		switch {
		case a == w || strings.Trim(a, "-") == w:
			sum += 2 * scoreA
		case strings.Contains(a, w):
			sum += scoreA
		case strings.Contains(b, w):
			sum += scoreB
		case strings.Contains(c, w):
			sum += scoreC
		default:
			return 0
		}
	}
	return sum
}

// snippetLength is how much text a hit shows, in bytes.
const snippetLength = 160

// snippet cuts the text around a word.
func snippet(text, word string) string {
	at := max(strings.Index(strings.ToLower(text), word), 0)
	begin := max(at-snippetLength/3, 0)
	if begin > 0 {
		if blank := strings.IndexByte(text[begin:], ' '); blank >= 0 {
			begin += blank + 1
		}
	}
	end := min(begin+snippetLength, len(text))
	for begin < len(text) && !utf8.RuneStart(text[begin]) {
		begin++
	}
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end++
	}
	cut := text[min(begin, end):end]
	if begin > 0 {
		cut = "… " + cut
	}
	if end < len(text) {
		cut += " …"
	}
	return cut
}

package view

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
)

// LogSearch is the lines of a piece of an output that have a text in them.
type LogSearch struct {
	Version int      `json:"v"`
	ID      string   `json:"id"`
	Stream  string   `json:"stream"`
	Text    string   `json:"text"` // that was searched for
	Case    bool     `json:"case"` // capital letters are not the same as small ones
	Lines   []LogHit `json:"lines"`
	Offset  int64    `json:"offset"` // where the piece begins
	Bytes   int64    `json:"bytes"`  // that were searched
	// where to go on, and the number of the line there; absent: all was searched
	Next     int64 `json:"next,omitempty"`
	NextLine int64 `json:"next_line,omitempty"`
}

// LogHit is a line with the text in it.
type LogHit struct {
	Line   int64  `json:"line"`   // from 1; behind an output that was cut, from the cut
	Offset int64  `json:"offset"` // of its first byte
	Text   string `json:"text"`   // without escape sequences except those of colours; long ones are cut
}

// Bounds of a search. Eight of them may be under way at once.
const (
	maxSearchText  = 200
	searchPiece    = 4 << 20 // bytes of the output
	maxLogHits     = 200
	maxHitText     = 400
	hitTextsBefore = 100 // bytes of a long line that are shown before the text
)

// SearchLog finds the lines of an output that have a text in them.
func SearchLog(c *route.Call) (any, error) {
	r, err := logRequestOf(c)
	if err != nil {
		return nil, err
	}
	r.Follow = false
	s := LogSearch{Version: document.Version, ID: r.GetId(), Stream: c.PathValue("stream"), Text: c.QueryValue("q"),
		Case: c.QueryValue("case") == "1", Lines: []LogHit{}}
	if s.Text == "" || len(s.Text) > maxSearchText {
		return nil, fmt.Errorf("q: %w: it is the text to search for, of at most %d bytes", roost.Invalid, maxSearchText)
	}
	line := int64(1)
	if text := c.QueryValue("line"); text != "" {
		if line, err = strconv.ParseInt(text, 10, 64); err != nil || line < 1 {
			return nil, fmt.Errorf("line: %w: it is the number of the line at offset, from 1", roost.Invalid)
		}
	}
	piece, from, err := readLogPiece(c, r, searchPiece)
	if err != nil {
		return nil, err
	}
	s.searchPiece(piece, from, line)
	return s, nil
}

// searchPiece searches a piece that begins with a line of a number.
func (s *LogSearch) searchPiece(piece []byte, from, line int64) {
	s.Offset = from
	fold := func(text string) string {
		if s.Case {
			return text
		}
		return strings.ToLower(text)
	}
	wanted := fold(s.Text)
	whole := len(piece) < searchPiece
	at := 0
	for at < len(piece) && len(s.Lines) < maxLogHits {
		raw, _, ended := bytes.Cut(piece[at:], []byte("\n"))
		text := string(raw)
		if !ended && !whole && at > 0 { // its rest is in the next piece
			break
		}
		if i := strings.Index(fold(text), wanted); i >= 0 {
			s.Lines = append(s.Lines, LogHit{line, from + int64(at), cutLine(text, i)})
		}
		at += len(text)
		if ended {
			at++
			line++
		}
	}
	s.Bytes = int64(at)
	if at < len(piece) || !whole {
		s.Next, s.NextLine = from+int64(at), line
	}
}

// cutLine returns the part of a long line around a place in it.
func cutLine(text string, at int) string {
	begin := 0
	if len(text) > maxHitText && at > hitTextsBefore {
		begin = min(at-hitTextsBefore, len(text))
	}
	end := min(begin+maxHitText, len(text))
	for begin > 0 && begin < end && !utf8.RuneStart(text[begin]) {
		begin++
	}
	for end < len(text) && end > begin && !utf8.RuneStart(text[end]) {
		end--
	}
	shown := SafeText(text[begin:end])
	if begin > 0 {
		shown = "… " + shown
	}
	if end < len(text) {
		shown += " …"
	}
	return shown
}

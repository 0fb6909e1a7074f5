package route

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

type exampleAmount struct {
	Free  float64 `json:"free"`
	Total int64   `json:"total"`
}

type exampleBase struct {
	Name string `json:"name"`
}

type exampleRow struct {
	exampleBase
	Amount exampleAmount  `json:"amount"`
	Extra  *exampleAmount `json:"extra,omitempty"`
	Counts map[string]int `json:"counts"`
	Made   time.Time      `json:"made"`
	Waits  bool           `json:"waits"`
	secret string
	Hidden string `json:"-"`
}

type exampleList struct {
	Version int          `json:"v"`
	Rows    []exampleRow `json:"rows"`
}

// newRowTable serves a list of rows at /v1/rows, and a view without rows at /v1/one.
func newRowTable(rows []exampleRow) *Table {
	show := func(c *Call) (any, error) {
		c.LinkNext("after", `a"<b>`)
		c.NoteUnreachable("n2\r\nx")
		return exampleList{1, rows}, nil
	}
	return New([]Route{
		{Method: "GET", Pattern: "/v1/rows", Rights: Anonymous, Class: Files, View: show, Reply: exampleList{},
			Rows: "rows"},
		{Method: "GET", Pattern: "/v1/one", Rights: Anonymous, Class: Files, View: show},
	}, Options{Hosts: []string{"example.com"}, Log: slog.New(slog.DiscardHandler)})
}

func getRows(t *Table, path, accept string, more ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "http://example.com"+path, nil)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	for _, name := range more {
		r.Header.Set(name, "gzip")
	}
	w := httptest.NewRecorder()
	t.ServeHTTP(w, r)
	return w
}

// TestMediaTypes tries headers of programs, browsers, and those that fit nothing.
func TestMediaTypes(t *testing.T) {
	table := newRowTable(nil)
	for accept, want := range map[string]string{
		"": typeJSON, "*/*": typeJSON, typeJSON: typeJSON, "application/*": typeJSON, "garbage": typeJSON,
		typeCSV: typeCSV, "text/*": typeCSV, "text/csv;q=0.1, application/json;q=0": typeCSV,
		"text/csv, application/json": typeCSV, "application/json, text/csv": typeJSON, "TEXT/CSV": typeCSV,
		"text/html,application/xml;q=0.9,*/*;q=0.8": typeJSON,
		"application/json;q=0.5, application/jsonl": typeJSONLines,
		typeNDJSON: typeNDJSON, "*/*, application/json;q=0": typeCSV, "text/csv;q=2": typeJSON,
		"text/html": "", "image/png, text/plain": "", "text/csv;q=0": "", "*/*;q=0": "",
	} {
		answer := getRows(table, "/v1/rows", accept)
		got, _, _ := strings.Cut(answer.Header().Get("Content-Type"), ";")
		if answer.Header().Get("Vary") == "" {
			t.Errorf("Accept %q: the answer does not vary", accept)
		}
		if want != "" && (got != want || answer.Code != http.StatusOK) {
			t.Errorf("Accept %q: got %d %q, want %q", accept, answer.Code, got, want)
		}
		if text := answer.Body.String(); want == "" && (answer.Code != http.StatusNotAcceptable ||
			!strings.Contains(text, typeCSV) || !strings.Contains(text, typeNDJSON)) {
			t.Errorf("Accept %q: got %d %s", accept, answer.Code, text)
		}
	}
	if got := getRows(table, "/v1/one", typeCSV); got.Code != http.StatusNotAcceptable ||
		strings.Contains(got.Body.String(), typeCSV) {
		t.Errorf("a view without rows: %d %s", got.Code, got.Body)
	}
}

// hostileNames are texts that CSV, JSON Lines or a spreadsheet could take for more.
var hostileNames = []string{"plain", `=HYPERLINK("http://evil.example")`, "+1", "-1+cmd|' /C calc'!A0", "@SUM(A1)",
	"\t=1", "\r=1", "a,b", `say "hi"`, "two\nlines", "Übergröße 日本 🦉", "-12.5", "</script>", "a\u2028b", ""}

func hostileRows() (rows []exampleRow) {
	for i, name := range hostileNames {
		rows = append(rows, exampleRow{exampleBase: exampleBase{name}, Amount: exampleAmount{-1.5, int64(i)},
			Counts: map[string]int{"a": i}, Made: time.Unix(0, 0).UTC(), secret: "secret", Hidden: "secret"})
	}
	rows[1].Extra = &exampleAmount{2, 3}
	return rows
}

// TestCSVRows reads an answer again, as a program does. No cell of a text is a formula.
func TestCSVRows(t *testing.T) {
	answer := getRows(newRowTable(hostileRows()), "/v1/rows?limit=3&q=a%26b", typeCSV)
	records, err := csv.NewReader(answer.Body).ReadAll()
	if err != nil || len(records) != len(hostileNames)+1 {
		t.Fatalf("%v, %d rows", err, len(records))
	}
	head := []string{"name", "amount.free", "amount.total", "extra.free", "extra.total", "counts", "made", "waits"}
	if !slices.Equal(records[0], head) {
		t.Errorf("got the columns %q, want %q", records[0], head)
	}
	for i, name := range hostileNames {
		row, want := records[i+1], name
		if strings.ContainsAny(name[:min(1, len(name))], "=+-@\t\r") && name != "-12.5" {
			want = "'" + name
		}
		rest := []string{"-1.5", fmt.Sprint(i), "", "", fmt.Sprintf(`{"a":%d}`, i), "1970-01-01T00:00:00Z", "false"}
		if i == 1 {
			rest[2], rest[3] = "2", "3"
		}
		if row[0] != want || !slices.Equal(row[1:], rest) {
			t.Errorf("got %q, want %q and %q", row, want, rest)
		}
	}
	h := answer.Header()
	if got, want := h.Get("Link"), `</v1/rows?after=a%22%3Cb%3E&limit=3&q=a%26b>; rel="next"`; got != want {
		t.Errorf("got the link %s, want %s", got, want)
	}
	if got := h.Get("Roost-Unreachable"); got == "" || strings.ContainsAny(got, "\r\n") {
		t.Errorf("unreachable: %q", got)
	}
	if h.Get("ETag") == "" || h.Get("Content-Length") == "" || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("it lacks headers: %v", h)
	}
}

// TestJSONLines holds that each line is one row, as the document has it.
func TestJSONLines(t *testing.T) {
	rows := hostileRows()
	for _, kind := range []string{typeJSONLines, typeNDJSON} {
		n, lines := 0, bufio.NewScanner(getRows(newRowTable(rows), "/v1/rows", kind).Body)
		for ; lines.Scan(); n++ {
			var row exampleRow
			if err := json.Unmarshal(lines.Bytes(), &row); err != nil || row.Name != hostileNames[n] {
				t.Errorf("line %d: %v: %s", n, err, lines.Bytes())
			}
			if strings.ContainsAny(lines.Text(), "<>\u2028") {
				t.Errorf("line %d has what means something in HTML: %s", n, lines.Text())
			}
		}
		if n != len(rows) {
			t.Errorf("got %d lines, want %d", n, len(rows))
		}
	}
}

// TestLongRows streams an answer that is longer than one in memory may be, compressed and
// not.
func TestLongRows(t *testing.T) {
	rows := slices.Repeat([]exampleRow{{exampleBase: exampleBase{strings.Repeat("x", 1000)}}}, maxAnswer/1000+1)
	table := newRowTable(rows)
	for _, more := range [][]string{nil, {"Accept-Encoding"}} {
		answer := getRows(table, "/v1/rows", typeCSV, more...)
		var body io.Reader = answer.Body
		if more != nil {
			z, err := gzip.NewReader(body)
			if err != nil {
				t.Fatal(err)
			}
			body = z
		}
		records, err := csv.NewReader(body).ReadAll()
		if err != nil || len(records) != len(rows)+1 || len(records[len(rows)][0]) != 1000 {
			t.Errorf("%v: %v, %d rows, want %d", more, err, len(records), len(rows)+1)
		}
		if h := answer.Header(); h.Get("Content-Length") != "" || !answer.Flushed {
			t.Errorf("%v: it is no stream: %v", more, h)
		}
	}
	if got := getRows(table, "/v1/rows", typeJSON); got.Code != http.StatusTooManyRequests {
		t.Errorf("a document of that length: %d", got.Code)
	}
}

// TestMissingRows refuses a route whose rows are in no member of its reply.
func TestMissingRows(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("the route is accepted")
		}
	}()
	New([]Route{{Method: "GET", Pattern: "/v1/x", Rights: Anonymous, Class: Files, Reply: exampleList{}, Rows: "v",
		View: func(*Call) (any, error) { return nil, nil }}}, Options{})
}

package manual

import (
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/net/html"

	"github.com/roost-batch/roost/man"
)

func loadManual(t *testing.T) *Manual {
	t.Helper()
	m, err := Load(man.ManualPages)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestAllPages converts the whole manual. No macro or escape is unknown, elements are
// balanced, every page has a summary, and links and anchors exist once.
func TestAllPages(t *testing.T) {
	m := loadManual(t)
	if len(m.Pages()) < 90 {
		t.Fatalf("got %d pages", len(m.Pages()))
	}
	for _, p := range m.Pages() {
		if p.Summary == "" {
			t.Errorf("%s has no summary", p.FileName())
		}
		checkElements(t, p)
		for _, link := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(string(p.Body), -1) {
			if m.pages[link[1]] == nil {
				t.Errorf("%s links to %s, which is no page", p.FileName(), link[1])
			}
		}
		seen := map[string]bool{}
		for _, id := range regexp.MustCompile(`id="([^"]*)"`).FindAllStringSubmatch(string(p.Body), -1) {
			if seen[id[1]] {
				t.Errorf("%s has the anchor %s twice", p.FileName(), id[1])
			}
			seen[id[1]] = true
		}
		for _, h := range p.Headings {
			if !seen[h.Anchor] {
				t.Errorf("%s: no anchor for %s", p.FileName(), h.Text)
			}
		}
	}
}

// checkElements reports elements that are closed in another order than they were opened.
func checkElements(t *testing.T, p *Page) {
	t.Helper()
	var open []string
	z := html.NewTokenizer(strings.NewReader(string(p.Body)))
	for {
		switch z.Next() {
		case html.ErrorToken:
			if z.Err() != io.EOF || len(open) > 0 {
				t.Errorf("%s: %v, open at the end: %q", p.FileName(), z.Err(), open)
			}
			return
		case html.StartTagToken:
			if name, _ := z.TagName(); string(name) != "br" {
				open = append(open, string(name))
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if len(open) == 0 || open[len(open)-1] != string(name) {
				t.Errorf("%s: </%s> closes %q", p.FileName(), name, open)
				return
			}
			open = open[:len(open)-1]
		}
	}
}

const samplePage = `'\" t
.TH SAMPLE 1
.SH NAME
sample \- show <what> is & was
.SH "TWO WORDS"
.B sample
[\fIoptions\fR] \(bu see
.BR other (5),
and other(5) and unknown(5).
.TP
\fB\-j\fR, \fB\-\-jobs\fR \fIN\fR
How many; a backslash is \e.
.TP
.BI stdout " text"
.TQ
.BI stderr " text"
Files.
.RS
.IP \(bu 2
one
.IP \(bu 2
two
.RE
.PP
.nf
  x < y
.fi
.TS
l r.
a	1
T{
long
text
T}	2
.TE
`

func TestConvert(t *testing.T) {
	m, err := Load(fstest.MapFS{"sample.1": {Data: []byte(samplePage)},
		"other.5": {Data: []byte(".SH NAME\nother \\- x\n")}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Page("sample")
	if err != nil {
		t.Fatal(err)
	}
	want := `<h2 id="name">NAME</h2>
<p>sample - show &lt;what&gt; is &amp; was
</p>
<h2 id="two-words">TWO WORDS</h2>
<p><b>sample</b>
[<i>options</i>] • see
<a href="other.5">other(5)</a>,
and <a href="other.5">other(5)</a> and unknown(5).
</p>
<dl>
<dt id="j-jobs-n"><b>-j</b>, <b>--jobs</b> <i>N</i></dt><dd><p>How many; a backslash is \.
</p>
</dd>
<dt id="stdout-text"><b>stdout</b><i> text</i></dt><dt id="stderr-text"><b>stderr</b><i> text</i></dt><dd><p>Files.
</p>
<div class="indent"><ul>
<li><p>one
</p>
</li>
<li><p>two
</p>
</li></ul>
</div>
</dd></dl>
<pre tabindex="0">  x &lt; y
</pre>
<table>
<tr><td>a</td><td class="number">1</td></tr>
<tr><td>long
text</td><td class="number">2</td></tr>
</table>
`
	if got := string(p.Body); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if p.Summary != "show <what> is & was" {
		t.Errorf("got summary %q", p.Summary)
	}
	for _, bad := range []string{".XX\n", "a \\z\n", "\\(zz\n", "\\", ".RE\n", ".TS\nl\n", ".TS\nl.\nT{\n.TE", ".TP",
		".TQ\nx", "\\fX", ".fi", ".nf\n.PP\n.fi", ".nf\nx"} {
		if _, err := Load(fstest.MapFS{"bad.1": {Data: []byte(bad)}}); err == nil {
			t.Errorf("%q was converted", bad)
		}
	}
}

func TestSearch(t *testing.T) {
	m := loadManual(t)
	for query, want := range map[string]string{
		"qsub": "qsub.1", "--constraint": "", "walltime": "", "ROOST_DIR": "",
		"checkpoint server": "roost-checkpoint-server.8",
	} {
		hits := m.Search(query, 20)
		if len(hits) == 0 || len(hits) > 20 || want != "" && hits[0].Page.FileName() != want {
			t.Errorf("%q: got %+v", query, hits)
		}
	}
	for _, query := range []string{"", "   ", "zzyzzxyzzy", strings.Repeat("x", 10_000)} {
		if hits := m.Search(query, 20); len(hits) > 0 {
			t.Errorf("%.20q: got %d hits", query, len(hits))
		}
	}
}

func FuzzConvert(f *testing.F) {
	f.Add(samplePage)
	f.Fuzz(func(t *testing.T, source string) {
		if m, err := Load(fstest.MapFS{"sample.1": {Data: []byte(source)}}); err == nil {
			m.Search(source, 5)
			checkElements(t, m.pages["sample.1"])
		}
	})
}

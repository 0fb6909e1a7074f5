package page

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestTerminalText(t *testing.T) {
	for in, want := range map[string]string{
		"plain <b>":                   "plain &lt;b&gt;",
		"\x1b[31mred\x1b[0m not":      `<span class="ansi-31">red</span> not`,
		"\x1b[1;32mbold\x1b[22mgreen": `<span class="ansi-1 ansi-32">bold</span><span class="ansi-32">green</span>`,
		"\x1b[31ma\x1b[92mb\x1b[39mc": `<span class="ansi-31">a</span><span class="ansi-92">b</span>c`,
		"\x1b[mx\x1b[38;5;200my":      "xy",
		"\x1b]8;;http://x":            "␛]8;;http://x",
		"\x1b[31":                     "␛[31",
	} {
		if got := TerminalText(in); string(got) != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestStackBar(t *testing.T) {
	got := string(stackBar(BarPart{3, "fill-ok", "3 <done>"}, BarPart{0, "fill-bad", "none"},
		BarPart{1, "fill-idle", "1 waits"}))
	for _, want := range []string{`aria-label="3 &lt;done&gt;, 1 waits"`,
		`x="0.00" width="750.00"`, `x="750.00" width="250.00"`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if strings.Contains(got, "fill-bad") {
		t.Errorf("a part of 0 is drawn: %s", got)
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{numberText(1234567), "1\u202f234\u202f567"}, {numberText(1234), "1234"}, {numberText(12.5), "12.5"},
		{numberText(-20000.0), "−20\u202f000"}, {byteText(int64(1 << 30)), "1GiB"}, {percentText(1, 4), "25 %"},
		{percentText(1, 0), "–"}, {spanText(61.0), "1m01s"},
		{string(stateMark(`running"><script>`)), `<span class="state runningscript">running&#34;&gt;&lt;script&gt;</span>`},
		{string(timeElement("2026-03-01T12:00:00.500Z", "", time.FixedZone("X", -7200))),
			`<time datetime="2026-03-01T12:00:00Z">2026-03-01 10:00:00</time>`},
		{string(timeElement("x", "", time.UTC)), "–"},
		{string(timeElement("2026-03-01T12:00:00.500Z", "", time.UTC)),
			`<time datetime="2026-03-01T12:00:00Z">2026-03-01 12:00:00</time>`},
		{string(currentPage("/jobs/12", "/jobs")), ` aria-current="page"`}, {string(currentPage("/jobs", "/")), ""},
		{withQuery(url.Values{"a": {"1"}, "after": {"x"}}, "sort", "name"), "?a=1&sort=name"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// TestTemplates: every template is well formed. No page has a script or a style of its
// own, which the content security policy would refuse.
func TestTemplates(t *testing.T) {
	set, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(set.of) < 5 {
		t.Fatalf("got %d templates", len(set.of))
	}
	for name := range set.of {
		text, err := files.ReadFile("template/" + name.name + ".html")
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{" style=", "<style", "<script>", " onclick", " onload", "javascript:"} {
			if strings.Contains(string(text), bad) {
				t.Errorf("%s has %q", name.name, bad)
			}
		}
	}
}

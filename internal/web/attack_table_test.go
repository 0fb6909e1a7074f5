package web

import (
	"fmt"
	"html"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/web/route"
)

// The attacks on the pages and the API, and the tests of their defences:
//
//	W1   stored scripts             TestW1PagesEscape, TestW1Browser
//	W2   scripts in JSON and SVG    TestW2JSONEscapes; chart: TestHostileChart
//	W3   links of job text          TestW3Links, TestW1Browser
//	W4   requests of other sites    TestW4NoReadChanges
//	W5   DNS rebinding              TestW5ForeignHost; metrics: TestPageAccess
//	W6   clickjacking               TestW6Clickjacking
//	W7   traversal                  TestW7Traversal, TestW7Past
//	W8   requests to inner hosts    TestW8ProviderAddresses; oidc: TestRefuseLocal, TestRefusePlain
//	W9   fixed and ended sessions   TestW9Sessions
//	W10  codes used twice           TestW10OneTimeCode; ownerpage: TestW10LateLink; api: TestW10LinkLife
//	W11  rights of each route       TestW11Rights, TestRoutesComplete
//	W12  guessing                   TestW12SameAnswer; api: TestPrivateAttributes
//	W13  exhaustion                 TestW13Bounds, TestW13Slowloris, TestStreamBounds
//	W14  lines in logs and headers  TestW14LogInjection
//	W15  terminal escapes           view: TestW15SafeText; page: TestTerminalText
//	W16  formulas in CSV            TestW16CSVFormula
//	W17  SQL in filters             store: TestW17StatementsAreConstants, TestW17Filters
//	W18  foreign WebSockets         TestW18ForeignWebSockets
//	W19  forged proxy headers       TestW19ForgedProxyHeaders
//	W20  secrets in other places    TestW20Secrets
//	W21  a daemon that is taken     TestW21Files; e2e: TestW21WebConfined
//	W22  the log of writes          TestW22Audit
const attacks = 22

// TestAttackTable holds that each attack has a test that is named after it.
func TestAttackTable(t *testing.T) {
	found := map[string]bool{}
	for _, pattern := range []string{"*_test.go", "view/*_test.go", "../accounting/store/*_test.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^func Test(W[0-9]+)[A-Z]`).FindAllStringSubmatch(string(text), -1) {
				found[m[1]] = true
			}
		}
	}
	for i := range attacks {
		if name := fmt.Sprintf("W%d", i+1); !found[name] {
			t.Errorf("no test is named after %s", name)
		}
	}
}

// TestW3Links checks where the links of pages lead whose texts are addresses. They lead
// to pages of this server, and what leads elsewhere is http and opens without a handle.
func TestW3Links(t *testing.T) {
	t.Parallel()
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	links := 0
	for _, text := range []string{"javascript:alert(1)", "data:text/html,<script>alert(1)</script>", "vbscript:x",
		"//evil.example/", `\\evil.example`, "JaVaScRiPt:alert(1)", "java\tscript:alert(1)", " javascript:alert(1)",
		"http://evil.example/", "file:///etc/passwd", "jar:x", "blob:x"} {
		w.schedd.text = text
		for i, r := range w.server.table.Routes() {
			if i%limitedRequests == 0 {
				w.forgetLimits()
			}
			if r.Page == "" || !route.IsSafe(r.Method) {
				continue
			}
			q := as(w.request("GET", examplePath(r.Page)+"?q=n1&all=1", ""), cookie)
			q.Header.Set("Accept", "text/html")
			for _, m := range regexp.MustCompile(`<(a|form|link|script|img)\b[^>]*\s(?:href|action|src)="([^"]*)"[^>]*>`).
				FindAllStringSubmatch(w.do(q).Body.String(), -1) {
				links++
				address, err := url.Parse(html.UnescapeString(m[2]))
				leaves := err != nil || address.Scheme != "" || address.Host != "" ||
					strings.HasPrefix(strings.TrimSpace(html.UnescapeString(m[2])), "\\")
				isOpen := err == nil && (address.Scheme == "http" || address.Scheme == "https") && m[1] == "a" &&
					strings.Contains(m[0], `rel="noopener`)
				if leaves && !isOpen {
					t.Errorf("%s with %q: %s", r.Page, text, m[0])
				}
			}
		}
	}
	if links < 1000 {
		t.Errorf("only %d links were looked at", links)
	}
}

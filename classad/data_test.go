package classad

import (
	"bufio"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestVectors compares results with those of HTCondor's own engine (August 2026). Rows
// graded quirk (upstream's bugs) and stale (wrong in upstream's text) are left out. The
// expressions come from the tests and manuals of HTCondor and of PelicanPlatform/classad
// (both Apache-2.0), as the last column says, and from experiments.
func TestVectors(t *testing.T) { runTable(t, "vectors.tsv.gz") }

// TestOperatorTable runs every operator on pairs of values of all types.
func TestOperatorTable(t *testing.T) { runTable(t, "optable.tsv.gz") }

// TestFunctionTable runs every function on values of all types.
func TestFunctionTable(t *testing.T) { runTable(t, "functable.tsv.gz") }

func runTable(t *testing.T, name string) {
	t.Helper()
	rows, bad := 0, 0
	for _, row := range readTable(t, name) {
		ctx, src, want := row[0], row[1], row[2]
		if len(row) > 3 && (row[3] == "quirk" || row[3] == "stale") || documentedDifference(src) {
			continue
		}
		rows++
		got := evalRow(ctx, src)
		if !sameValue(got, want) {
			if bad++; bad <= maxShownErrors {
				t.Errorf("%s\t%s\n got %s\nwant %s", ctx, src, got, want)
			}
		}
	}
	t.Logf("%s: %d of %d rows give the expected value", name, rows-bad, rows)
	if rows == 0 {
		t.Fatalf("%s holds no rows", name)
	}
}

const maxShownErrors = 40

// documentedDifference reports whether a row shows one of upstream's bugs that the
// package comment lists.
func documentedDifference(src string) bool {
	switch src {
	case `relTime("")`, `relTime("-3.7")`, `relTime("12")`: // upstream returns a real
		return true
	case `(relTime(3600)) / (0.0)`: // upstream returns relTime("-24855+-3:-14:-nan"); ERROR here
		return true
	}
	return false
}

func readTable(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if row := strings.Split(lines.Text(), "\t"); len(row) >= 3 && !strings.HasPrefix(lines.Text(), "# context") {
			rows = append(rows, row)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// evalRow evaluates an expression in a context, both written as in the tables.
func evalRow(ctx, src string) string {
	if ctx == "PARSE_AD" {
		if src == "(empty string)" {
			src = ""
		}
		ad, err := Parse(src)
		if err != nil {
			return "PARSE_ERROR"
		}
		return ad.String()
	}
	left, right, pair := strings.Cut(ctx, ";;TARGET;;")
	my, target := New(), (*Ad)(nil)
	var err error
	if strings.TrimSpace(left) != "" {
		if my, err = Parse(left); err != nil {
			return "PARSE_ERROR " + err.Error()
		}
	}
	if pair {
		if target, err = Parse(right); err != nil {
			return "PARSE_ERROR " + err.Error()
		}
	}
	if op, ok := strings.CutPrefix(src, "MATCH:"); ok {
		r := Match(my, target, nil)
		return map[string]Value{"symmetric": BoolValue(r.Matched), "left.requirements": BoolValue(r.Left.IsTrue()),
			"right.requirements": BoolValue(r.Right.IsTrue())}[op].String()
	}
	e, err := ParseExpr(src)
	if err != nil {
		return "PARSE_ERROR " + err.Error()
	}
	return Eval(e, my, target, nil).String()
}

// sameValue compares texts of values without regard to blanks and to the order of an ad's
// attributes.
func sameValue(got, want string) bool {
	if got == want || strings.HasPrefix(got, "PARSE_ERROR") && strings.HasPrefix(want, "PARSE_ERROR") {
		return true
	}
	g, err1 := ParseExpr(got)
	w, err2 := ParseExpr(want)
	if err1 != nil || err2 != nil {
		return false
	}
	// Upstream's tests have several spellings of one value: 0.0, -(0.0), real("-0.0").
	x, ok1 := Eval(g, nil, nil, nil).Real()
	y, ok2 := Eval(w, nil, nil, nil).Real()
	return ok1 && ok2 && x == y || canonicalText(g) == canonicalText(w)
}

func canonicalText(e Expr) string {
	n, ok := withoutParens(e.n).(*adNode)
	if !ok {
		return e.String()
	}
	var parts []string
	for name, e := range n.ad.All() {
		parts = append(parts, strings.ToLower(name)+" = "+canonicalText(e))
	}
	slices.Sort(parts)
	return "[ " + strings.Join(parts, "; ") + " ]"
}

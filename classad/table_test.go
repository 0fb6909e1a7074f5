package classad

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// check checks a table's invariants.
func (t *Table) check(tb testing.TB) {
	tb.Helper()
	rows := 0
	for _, s := range t.segments {
		rows += len(s.rows)
		for at, r := range s.rows {
			if p := t.rows[r]; p.segment != s || p.row != at {
				tb.Fatalf("row %d is at %d of its segment, and knows of %d", r, at, p.row)
			}
		}
		if s.rowByRow {
			continue
		}
		if len(s.cols) != len(t.attrs) {
			tb.Fatalf("a segment has %d columns of %d", len(s.cols), len(t.attrs))
		}
		for c := range s.cols {
			col, undefs, bads := &s.cols[c], 0, 0
			for at, r := range s.rows {
				ad := t.rows[r].ad
				expr, there := ad.Lookup(t.attrs[c].name)
				if s.checkedAttrs.has(c) && s.presentAttrs.has(c) != there {
					tb.Fatalf("%s of %s is there: %v, and its segment says %v", t.attrs[c].name, ad, there,
						s.presentAttrs.has(c))
				}
				if col.class == classExpr {
					if _, ok := col.template.fits(expr.n, nil); !ok {
						tb.Fatalf("%s of %s is in a segment with another expression", t.attrs[c].name, ad)
					}
					continue
				}
				want, got := ad.Eval(t.attrs[c].name, nil), col.value(t, at)
				if got.String() != want.String() || got.kind == Undefined != col.undefined.has(at) ||
					got.kind == Error != col.errors.has(at) {
					tb.Fatalf("%s of %s is %s in the table, want %s", t.attrs[c].name, ad, got, want)
				}
				undefs += b2i(got.kind == Undefined)
				bads += b2i(got.kind == Error)
			}
			if col.class != classExpr && (undefs != col.undefinedCount || bads != col.errorCount) {
				tb.Fatalf("%s: %d undefined and %d bad, counted %d and %d", t.attrs[c].name, undefs, bads,
					col.undefinedCount, col.errorCount)
			}
		}
	}
	if rows != t.Len() {
		tb.Fatalf("%d rows in segments of %d", rows, t.Len())
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// randomExpr writes a random expression over a few names.
func randomExpr(r *rand.Rand, depth int) string {
	if depth <= 0 || r.IntN(6) == 0 {
		switch r.IntN(10) {
		case 0, 1, 2:
			return []string{"a", "b", "c", "d", "s", "t", "l", "p", "TARGET.a", "TARGET.b", "TARGET.c", "TARGET.s",
				"TARGET.t", "TARGET.l",
				"TARGET.g", "MY.a", "MY.b", "MY.s", "MY.e", "e", "f", "g", "TARGET.e", ".a", "Requirements",
				"TARGET.Requirements", "parent.a", "TARGET",
				"MY", "CurrentTime"}[r.IntN(30)]
		case 3, 4, 5:
			return fmt.Sprint(r.IntN(7) - 2)
		case 6:
			return []string{"0.5", "2.0", "-1.5", "1E300", "real(\"NaN\")", "real(\"-INF\")"}[r.IntN(6)]
		case 7:
			return []string{"true", "false", "undefined", "error"}[r.IntN(4)]
		}
		return []string{`"x"`, `"X"`, `"yy"`, `""`, `"2"`, `"x,yy"`, `"a + 1"`, `{ 1, 2, "x" }`, `{ a, TARGET.b }`,
			`[ a = 1; b = c ]`}[r.IntN(10)]
	}
	x := func() string { return randomExpr(r, depth-1) }
	switch r.IntN(14) {
	case 0, 1, 2:
		return "(" + x() + " " + []string{"&&", "||"}[r.IntN(2)] + " " + x() + ")"
	case 3, 4, 5, 6:
		return "(" + x() + " " + []string{"==", "!=", "<", "<=", ">", ">=", "=?=", "=!="}[r.IntN(8)] + " " + x() + ")"
	case 7, 8:
		return "(" + x() + " " + []string{"+", "-", "*", "/", "%", "&", ">>"}[r.IntN(7)] + " " + x() + ")"
	case 9:
		return []string{"!", "-", "~", "+"}[r.IntN(4)] + "(" + x() + ")"
	case 10:
		return "(" + x() + " ? " + x() + " : " + x() + ")"
	case 11:
		return "(" + x() + " ?: " + x() + ")"
	case 12:
		return []string{"isUndefined", "isError", "isString", "isInteger", "isReal", "isBoolean", "toUpper", "size",
			"int", "real", "floor", "string",
			"eval", "unparse", "bool"}[r.IntN(15)] + "(" + x() + ")"
	}
	switch r.IntN(8) {
	case 0:
		return "ifThenElse(" + x() + ", " + x() + ", " + x() + ")"
	case 1:
		return "regexp(" + x() + ", " + x() + ")"
	case 2:
		return "member(" + x() + ", " + x() + ")"
	case 3:
		return "stringListMember(" + x() + ", " + x() + ")"
	case 4:
		return "countMatches(" + x() + ", " + x() + ")"
	case 5:
		return x() + "[" + x() + "]"
	case 6:
		return "(time() - " + x() + ")"
	}
	return "strcat(" + x() + ", " + x() + ")"
}

// randomAd returns an ad with some of the names that randomExpr uses.
func randomAd(r *rand.Rand, t testing.TB) *Ad {
	ad := New()
	for _, name := range []string{"a", "b", "c", "d", "s", "t", "l", "e", "f", "g", "p"} {
		src := ""
		switch r.IntN(8) {
		case 0, 1:
			continue
		case 2:
			src = randomExpr(r, 2)
		default:
			switch name {
			case "a", "b":
				src = fmt.Sprint(r.IntN(6) - 1)
			case "c", "d":
				src = []string{"0.5", "2.0", "3", "-0.0"}[r.IntN(4)]
			case "s", "t":
				src = []string{`"x"`, `"X"`, `"yy"`, `"Yy"`, `"2"`}[r.IntN(5)]
			case "l":
				src = []string{`{ 1, 2 }`, `{ "x" }`, `{ [ a = 1 ], [ b = 2; a = 5 ] }`, `[ a = 3 ]`,
					`absTime("2020-01-01T00:00:00Z")`}[r.IntN(5)]
			case "e", "f":
				src = []string{"true", "false", "undefined", "error"}[r.IntN(4)]
			case "g":
				src = []string{"TARGET.a + b", "a > 1", "TARGET.s == s", "b", "time() > 5", "a < 3 && TARGET.b >= 2",
					"g"}[r.IntN(7)]
			case "p":
				src = []string{"[ a = 1; q = b ]", "{ b, c }", "a * 2"}[r.IntN(3)]
			}
		}
		if err := ad.SetExpr(name, src); err != nil {
			t.Fatalf("%s: %v", src, err)
		}
	}
	return ad
}

// checkTable compares queries with Match while rows are added, changed and removed.
func checkTable(t testing.TB, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	env := &EvalEnv{Now: time.Unix(1e9, 0).UTC(), Steps: 100_000}
	table := NewTable(TableOptions{})
	model := map[RowID]*Ad{}
	policies := []string{"true", "TARGET.a >= a", "g && TARGET.b > 0", "g", "a < 3 || d == 2", randomExpr(r, 3),
		randomExpr(r, 3)}
	machine := func() *Ad {
		ad := randomAd(r, t)
		if r.IntN(8) > 0 {
			if err := ad.SetExpr("Requirements", policies[r.IntN(len(policies))]); err != nil {
				t.Fatal(err)
			}
		}
		return ad
	}
	var requests []testRequest
	rows := func() []RowID {
		list := make([]RowID, 0, len(model))
		for row := range model {
			list = append(list, row)
		}
		slices.Sort(list)
		return list
	}
	for range 3 {
		for range 20 {
			switch list := rows(); {
			case len(list) > 0 && r.IntN(3) == 0:
				row := list[r.IntN(len(list))]
				ad := machine()
				table.Set(row, ad)
				model[row] = ad
			case len(list) > 0 && r.IntN(5) == 0:
				row := list[r.IntN(len(list))]
				table.Delete(row)
				delete(model, row)
			default:
				ad := machine()
				model[table.Add(ad)] = ad
			}
			table.check(t)
		}
		for range 4 {
			job := randomAd(r, t)
			for _, name := range []string{"Requirements", "Rank"} {
				src := randomExpr(r, 3)
				if name == "Requirements" && r.IntN(2) == 0 {
					src = randomExpr(r, 2) + " && " + randomExpr(r, 2)
				}
				if err := job.SetExpr(name, src); err != nil {
					t.Fatal(err)
				}
			}
			requests = append(requests, testRequest{job, table.Compile(job)})
		}
		for _, req := range requests {
			compareWithMatch(t, seed, req.q, req.job, model, rows(), env)
		}
	}
}

// compareWithMatch compares the result of a query for each row with Match.
func compareWithMatch(t testing.TB, seed uint64, q *Query, job *Ad, model map[RowID]*Ad, rows []RowID, env *EvalEnv) {
	t.Helper()
	hits := map[RowID]float64{}
	for _, h := range q.Select(nil, env) {
		if _, twice := hits[h.Row]; twice {
			t.Fatalf("seed %d: row %d is found twice", seed, h.Row)
		}
		hits[h.Row] = h.Rank
	}
	why := q.Explain(env)
	if why.Matched != len(hits) || why.Rows != len(model) {
		t.Fatalf("seed %d: %d of %d rows match, and are explained as %d of %d", seed, len(hits), len(model),
			why.Matched, why.Rows)
	}
	for _, row := range rows {
		checkExplain(t, why, job, row, model[row], env)
		want := Match(job, model[row], env)
		rank, ok := hits[row]
		if ok != want.Matched || ok && rank != want.LeftRank && (rank == rank || want.LeftRank == want.LeftRank) {
			t.Fatalf("seed %d: %s\nwith %s\nis %v, %v; want %+v", seed, job, model[row], ok, rank, want)
		}
		if one, alone := q.Match(row, env); alone != ok || one != rank && one == one {
			t.Fatalf("seed %d: %s\nwith %s\nis %v, %v alone and %v, %v with others", seed, job, model[row], alone,
				one, ok, rank)
		}
	}
}

// checkExplain compares an explanation with Reasons.
func checkExplain(t testing.TB, x *Explanation, job *Ad, row RowID, machine *Ad, env *EvalEnv) {
	t.Helper()
	want := map[string]bool{}
	refuses := false
	for _, reason := range Reasons(job, machine, env) {
		if reason.Side == Left {
			want[reason.Conjunct.String()] = true
		}
		refuses = refuses || reason.Side == Right
	}
	n, _ := x.Failing(row)
	if n == 0 != (len(want) == 0 && !refuses) || n < len(want) {
		t.Fatalf("%s\nwith %s\nfails %d conjuncts; want %v, refused %v", job, machine, n, want, refuses)
	}
	if n > 0 && len(want) > 0 {
		_, first := x.Failing(row)
		if c := x.Conjuncts[first]; c.Side != Left || !want[c.Expr.String()] {
			t.Fatalf("%s\nwith %s\nfails %s first; want %v", job, machine, c.Expr, want)
		}
	}
}

// TestTableAgainstMatch compares the compiled matcher with the evaluator on random ads.
// ROOST_SEEDS sets their number; 300 are a few seconds.
func TestTableAgainstMatch(t *testing.T) {
	seeds := 100
	if n, err := strconv.Atoi(os.Getenv("ROOST_SEEDS")); err == nil {
		seeds = n
	}
	for seed := range uint64(seeds) {
		checkTable(t, seed)
	}
}

// FuzzTable runs checkTable with any seed.
func FuzzTable(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkTable(t, seed) })
}

// FuzzCompiled compares the compiled form of any text with the evaluated tree, for rows
// of many kinds.
func FuzzCompiled(f *testing.F) {
	addSeeds(f)
	for _, src := range []string{`TARGET.a >= b && TARGET.s == "X" || !TARGET.e`,
		`regexp("^x", TARGET.s) ? TARGET.c > 1 : TARGET.d / 0 > 1`, `TARGET.g ?: a`} {
		f.Add(src)
	}
	r := rand.New(rand.NewPCG(7, 7))
	table := NewTable(TableOptions{})
	var rows []*Ad
	for range 40 {
		ad := randomAd(r, f)
		ad.SetBool("Requirements", true)
		rows = append(rows, ad)
		table.Add(ad)
	}
	f.Fuzz(func(t *testing.T, src string) {
		e, err := ParseExpr(src)
		if err != nil {
			return
		}
		env := &EvalEnv{Now: time.Unix(1e9, 0).UTC(), Steps: 10_000}
		for _, job := range []*Ad{randomAd(rand.New(rand.NewPCG(uint64(len(src)), 1)), t), New()} {
			job.Insert("Requirements", e)
			job.Insert("Rank", e)
			hits := table.Compile(job).Select(nil, env)
			for i, row := range rows {
				want := Match(job, row, env)
				at := slices.IndexFunc(hits, func(h QueryHit) bool { return h.Row == RowID(i) })
				if (at >= 0) != want.Matched && !reachesBound(job, row, env) {
					t.Fatalf("%s\nwith %s\nis %v, want %+v", job, row, at >= 0, want)
				}
				if at >= 0 && want.Matched && hits[at].Rank != want.LeftRank && hits[at].Rank == hits[at].Rank {
					t.Fatalf("%s\nwith %s\nhas rank %v, want %+v", job, row, hits[at].Rank, want)
				}
			}
		}
	})
}

// reachesBound reports whether a match exceeds a bound of env. Compiled code needs fewer
// steps.
func reachesBound(job, row *Ad, env *EvalEnv) bool {
	more := *env
	more.Steps = MaxSteps
	return Match(job, row, &more).Left.String() != Match(job, row, env).Left.String()
}

func parseTestExpr(t testing.TB, src string) Expr {
	t.Helper()
	e, err := ParseExpr(src)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestUnconditional checks a job without requirements. It matches all rows without
// requirements, with rank 0, and no deleted row.
func TestUnconditional(t *testing.T) {
	table := NewTable(TableOptions{Requirements: []string{"Requirements"}, MatchAllByDefault: true})
	var rows []RowID
	for range 300 {
		rows = append(rows, table.Add(New()))
	}
	job := New()
	job.SetBool("Requirements", true)
	q := table.Compile(job)
	for gone := range 3 {
		hits := q.Select(nil, &EvalEnv{})
		if len(hits) != len(rows)-gone {
			t.Fatalf("%d of %d rows match, %d are gone", len(hits), len(rows), gone)
		}
		for _, h := range hits {
			if rank, ok := q.Match(h.Row, &EvalEnv{}); !ok || rank != 0 || h.Rank != 0 {
				t.Fatalf("row %d: rank %g and %g, %t", h.Row, h.Rank, rank, ok)
			}
		}
		table.Delete(rows[gone])
		if _, ok := q.Match(rows[gone], &EvalEnv{}); ok {
			t.Fatalf("row %d matches, and is gone", gone)
		}
	}
	no := New()
	no.SetBool("Requirements", false)
	table.Set(rows[5], no)
	if _, ok := q.Match(rows[5], &EvalEnv{}); ok {
		t.Error("a row matches that takes nobody")
	}
	if hits := q.Select(nil, &EvalEnv{}); len(hits) != len(rows)-4 {
		t.Errorf("%d rows match", len(hits))
	}
}

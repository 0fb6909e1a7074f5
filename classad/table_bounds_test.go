package classad

import (
	"fmt"
	"strings"
	"testing"
)

// mixedTable returns a table with this many rows of many types, some of which have an
// expression of their own.
func mixedTable(t *testing.T, rows int) (*Table, []*Ad) {
	table := NewTable(TableOptions{})
	var ads []*Ad
	for i := range rows {
		src := fmt.Sprintf(`[ x = %d; y%d = %s; Name = "m%d"; Requirements = %s ]`, i, i%64,
			[]string{"1", "1.5", `"s"`, "true", "TARGET.n"}[i%5], i,
			[]string{"true", fmt.Sprintf("TARGET.n + x*0 %s size(\"%s\")", []string{">=", "<="}[i%2],
				"abcdefgh"[:i%8])}[min(i%3, 1)])
		if i%2 == 0 {
			src = fmt.Sprintf(`[ x = %d; Requirements = member(%d, { TARGET.n, %d }) || x%d ]`, i, i, i, i)
		}
		ad := parseOrFail(t, src)
		ads = append(ads, ad)
		table.Add(ad)
	}
	return table, ads
}

// askBounded asks a table the i-th of many different questions, and checks its bounds.
func askBounded(t *testing.T, table *Table, ads []*Ad, i int, compare bool) {
	t.Helper()
	job := parseOrFail(t, fmt.Sprintf(
		`[ n = %d; Requirements = TARGET.x > %d && isUndefined(TARGET.z%d) || TARGET.y%d == 1 ]`, i%9, i/3, i, i%64,
	))
	hits := table.Compile(job).Select(nil, nil)
	want := 0
	for _, ad := range ads {
		if compare && Match(job, ad, nil).Matched {
			want++
		}
	}
	if compare && len(hits) != want {
		t.Fatalf("%s: %d rows match, want %d", job, len(hits), want)
	}
	if len(table.attrs) > maxColumns || len(table.segments) > maxSegments || len(table.templates) > maxTemplates {
		t.Fatalf("%d columns, %d segments, %d templates", len(table.attrs), len(table.segments), len(table.templates))
	}
}

// TestTableBounds gives a table more columns, expressions and kinds of rows than it may
// store.
func TestTableBounds(t *testing.T) {
	table, ads := mixedTable(t, 1500)
	for i := range 10 {
		askBounded(t, table, ads, i*100, true)
	}
	table.check(t)
	few := NewTable(TableOptions{})
	for _, ad := range ads[:40] {
		few.Add(ad)
	}
	for i := range maxColumns + 200 {
		askBounded(t, few, ads[:40], i, i%250 == 0)
	}
	few.check(t)
}

// TestTableForgetsStrings gives a table more strings than it may store, in one row after
// another.
func TestTableForgetsStrings(t *testing.T) {
	table, ads := mixedTable(t, 100) // each rebuild places all of them again
	q := table.Where(parseTestExpr(t, `Name == "changing"`))
	for i := range 2*fewValues + 10_000 {
		ads[0] = New()
		ads[0].SetString("Name", fmt.Sprint("name", i))
		table.Set(0, ads[0])
		if i%5000 == 0 {
			q.Select(nil, nil)
		}
	}
	q.Select(nil, nil)
	if n := len(table.strings.values); n > 2*fewValues+len(ads) {
		t.Fatalf("the dictionary remembers %d strings", n)
	}
	table.check(t)
}

// TestTableKeepsStrings checks that strings in use are no reason to rebuild a table.
func TestTableKeepsStrings(t *testing.T) {
	many := NewTable(TableOptions{})
	for i := range fewValues + 1000 {
		ad := New()
		ad.SetString("Name", fmt.Sprint("name", i))
		many.Add(ad)
	}
	q := many.Where(parseTestExpr(t, `Name == "name7"`))
	q.Select(nil, nil)
	epoch := many.epoch
	for range 5 {
		q.Select(nil, nil)
	}
	if many.epoch != epoch {
		t.Fatalf("the table was built anew %d times for nothing", many.epoch-epoch)
	}
}

// TestTableLongValue checks that a row with a list too long to store is evaluated alone.
func TestTableLongValue(t *testing.T) {
	long := NewTable(TableOptions{})
	long.Add(parseOrFail(t, fmt.Sprintf(`[ l = { "%s", 1 }; Requirements = true ]`, strings.Repeat("x", maxOther))))
	long.Add(parseOrFail(t, `[ l = { 1 }; Requirements = true ]`))
	job := parseOrFail(t, `[ Requirements = member(1, TARGET.l) ]`)
	if hits := long.Compile(job).Select(nil, nil); len(hits) != 2 || len(long.rowByRow.rows) != 1 {
		t.Fatalf("%d rows match, and %d are evaluated by themselves", len(hits), len(long.rowByRow.rows))
	}
}

// TestTableBudget checks that requirements which take very many nodes a row do not do so
// for all rows.
func TestTableBudget(t *testing.T) {
	slow := NewTable(TableOptions{})
	for range 2000 {
		slow.Add(parseOrFail(t, `[ Requirements = true ]`))
	}
	text := "[ x0 = 1"
	for i := range 12 {
		text += fmt.Sprintf("; x%d = x%d + x%d", i+1, i, i)
	}
	q := slow.Compile(parseOrFail(t, text+"; Requirements = x12 > 0 && eval(TARGET.y ?: \"true\") ]"))
	if hits := q.Select(nil, &EvalEnv{Steps: 200_000}); len(hits) == 0 || len(hits) == 2000 || q.budget > 0 {
		t.Fatalf("%d rows match, and %d nodes are left", len(hits), q.budget)
	}
}

// TestExplainBound checks that conjuncts which each name two others do not grow without
// end.
func TestExplainBound(t *testing.T) {
	text := "[ Requirements = a0 && a0"
	for i := range 40 {
		text += fmt.Sprintf("; a%d = a%d && a%d", i, i+1, i+1)
	}
	job := parseOrFail(t, text+"; a40 = TARGET.n > 1 ]")
	names := NewTable(TableOptions{})
	names.Add(parseOrFail(t, `[ n = 2; Requirements = true ]`))
	machine := parseOrFail(t, strings.ReplaceAll(text, "n > 1", "RequestCpus < 1")+"; a40 = TARGET.RequestCpus < 1 ]")
	names.Add(machine)
	if why := names.Compile(job).Explain(nil); why.Rows != 2 || len(why.Conjuncts) > 2*maxConjuncts {
		t.Fatalf("%d rows and %d conjuncts", why.Rows, len(why.Conjuncts))
	}
	if reasons := Reasons(job, machine, nil); len(reasons) == 0 {
		t.Fatal("no reasons")
	}
}

package classad

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// largeMachine returns an ad whose columns have all types, with some values missing or
// odd.
func largeMachine(r *rand.Rand) *Ad {
	ad := New()
	set := func(name string, v Value) {
		switch r.IntN(30) {
		case 0:
		case 1:
			ad.SetValue(name, UndefinedValue())
		case 2:
			ad.SetValue(name, ErrorValue())
		default:
			ad.SetValue(name, v)
		}
	}
	set("Memory", IntValue(r.Int64N(100)*1000))
	set("Name", StringValue(fmt.Sprintf("Slot%d", r.IntN(2000))))
	set("Arch", StringValue([]string{"X86_64", "x86_64", "aarch64"}[r.IntN(3)]))
	set("Load", RealValue([]float64{0, math.Copysign(0, -1), 0.5, 1.5, math.NaN(), math.Inf(-1)}[r.IntN(6)]+
		float64(r.IntN(4))))
	set("Docker", BoolValue(r.IntN(2) == 0))
	set("Site", ListValue(StringValue("a"), IntValue(r.Int64N(5))))
	gpu := func() Value {
		ad := New()
		ad.SetReal("Capability", 7+float64(r.IntN(4))/2)
		if r.IntN(4) > 0 {
			ad.SetInt("GlobalMemoryMb", 20000*(1+r.Int64N(3)))
		}
		return AdOf(ad)
	}
	set("Gpu", gpu())
	gpus := make([]Value, r.IntN(3))
	for i := range gpus {
		gpus[i] = gpu()
	}
	set("AvailableGPUs", ListValue(gpus...))
	limit, _ := ParseExpr(fmt.Sprintf(`TARGET.n < %d && Owner != "u%d"`, r.IntN(50), r.IntN(3)))
	if r.IntN(3) > 0 {
		ad.Insert("Requirements", limit)
	} else {
		ad.SetBool("Requirements", true)
	}
	return ad
}

// testRequest is a job and its query.
type testRequest struct {
	job *Ad
	q   *Query
}

// largeRequests returns requests for all ways of evaluation: indexes, programs, and
// cached results.
func largeRequests(t *testing.T, table *Table) []testRequest {
	var requests []testRequest
	for _, src := range []string{
		`countMatches(MY.RequireGPUs, TARGET.AvailableGPUs) >= 1`,
		`countMatches(RequireGPUs, TARGET.AvailableGPUs) > n % 3 && TARGET.Docker`,
		`countMatches(Capability > 8 && Memory > 1, TARGET.AvailableGPUs) > 0`, `TARGET.Gpu.GlobalMemoryMb > 30000`,
		`TARGET.Gpu.Memory > 50000`,
		`TARGET.Site[1] == 3`, `TARGET.AvailableGPUs[0].Capability >= 8.5`,
		`sum(evalInEachContext(GlobalMemoryMb, TARGET.AvailableGPUs)) > 70000`,
		`TARGET.Memory == 42000`, `TARGET.Memory > 98000 && TARGET.Docker`, `97500.5 < TARGET.Memory`,
		`TARGET.Memory < 1000`, `TARGET.Memory <= 0 || false`,
		`TARGET.Name == "slot77"`, `TARGET.Name == "SLOT77" && TARGET.Load >= 0`, `TARGET.Name == "nobody"`,
		`"Slot5" == TARGET.Name`, `TARGET.Name < "slot1"`,
		`TARGET.Load == 0`, `TARGET.Load < -1`, `TARGET.Load > 4`, `TARGET.Load >= 4.5 && TARGET.Arch == "x86_64"`,
		`TARGET.Load != TARGET.Load`,
		`member(3, TARGET.Site) && TARGET.Arch =?= "x86_64"`, `regexp("^slot1.*7$", TARGET.Name, "i")`,
		`TARGET.Memory / 1000 % 7 == n % 7`,
		`isUndefined(TARGET.Memory) || isError(TARGET.Arch)`, `(TARGET.Docker ?: false) && TARGET.Memory * 1.5 > 70000`,
		`TARGET.Docker == true || TARGET.Memory =!= undefined`,
		`ifThenElse(TARGET.Docker, TARGET.Memory, TARGET.Load) > 3`, `TARGET.Memory > 9223372036854775807`,
		`TARGET.Memory >= -9223372036854775808 && TARGET.Load < 1E308`,
	} {
		job := parseOrFail(t,
			fmt.Sprintf(
				`[ n = %d; Owner = "u%d"; RequireGPUs = Capability >= 8.0 && GlobalMemoryMb >= 10000; Requirements = %s; Rank = TARGET.Memory - TARGET.Load ]`, len(requests), len(requests)%4, src,
			))
		requests = append(requests, testRequest{job, table.Compile(job)})
	}
	return requests
}

// compareHits compares the rows found for a request with Match.
func compareHits(t *testing.T, req testRequest, hits []QueryHit, model map[RowID]*Ad, env *EvalEnv) {
	t.Helper()
	var got, want []string
	for _, h := range hits {
		got = append(got, fmt.Sprintf("%06d %v", h.Row, h.Rank))
	}
	for row, ad := range model {
		if m := Match(req.job, ad, env); m.Matched {
			want = append(want, fmt.Sprintf("%06d %v", row, m.LeftRank))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("%s: %d rows match, want %d", req.job, len(got), len(want))
	}
}

// TestLargeTable compares queries over many blocks with Match while rows change. The
// queries use columns and indexes.
func TestLargeTable(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	env := &EvalEnv{Now: time.Unix(1e9, 0).UTC()}
	table, model := NewTable(TableOptions{}), map[RowID]*Ad{}
	var rows []RowID
	for range 7000 {
		ad := largeMachine(r)
		row := table.Add(ad)
		model[row] = ad
		rows = append(rows, row)
	}
	requests := largeRequests(t, table)
	indexed := 0
	const rounds = 4
	for round := range rounds {
		for _, req := range requests {
			got := req.q.Select(nil, env)
			if round == rounds-1 { // in other rounds the query only learns which conditions exclude most
				compareHits(t, req, got, model, env)
			}
		}
		for range 700 {
			switch k := r.IntN(len(rows)); r.IntN(4) {
			case 0:
				table.Delete(rows[k])
				delete(model, rows[k])
				rows = slices.Delete(rows, k, k+1)
			case 1:
				ad := largeMachine(r)
				row := table.Add(ad)
				model[row] = ad
				rows = append(rows, row)
			default:
				ad := largeMachine(r)
				table.Set(rows[k], ad)
				model[rows[k]] = ad
			}
		}
		table.check(t)
	}
	for _, s := range table.segments {
		for c := range s.cols {
			if s.cols[c].index != nil {
				indexed++
			}
		}
	}
	if indexed == 0 {
		t.Fatal("no column has an index")
	}
	trees := 0
	for _, req := range requests {
		for _, p := range req.q.parts {
			for _, c := range p.rowConditions {
				trees += b2i(!c.compiled)
			}
		}
	}
	t.Logf("%d segments, %d indexes, %d conditions left to the evaluator", len(table.segments), indexed, trees)
}

// TestSelectAllocatesNothing checks that a query of an unchanged table allocates no
// memory.
func TestSelectAllocatesNothing(t *testing.T) {
	table, _ := benchTable(t, 5000)
	for _, src := range []string{selective, common,
		`[ RequestMemory = 1; Requirements = regexp("^slot1", TARGET.Name) && TARGET.LoadAvg * 2 < 1 || TARGET.Gpus =!= 1 ]`} {
		q := table.Compile(parseOrFail(t, src))
		hits := q.Select(make([]QueryHit, 0, 5000), nil)
		if n := testing.AllocsPerRun(10, func() { hits = q.Select(hits[:0], nil) }); n != 0 || len(hits) == 0 {
			t.Errorf("%s: %v allocations for %d hits", src, n, len(hits))
		}
	}
}

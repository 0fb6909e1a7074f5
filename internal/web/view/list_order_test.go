package view

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/roost-batch/roost/internal/document"
)

// TestRowSort walks through the parts of lists in each order and compares them with a
// sorted list. Each row is there once, although many have the same key.
func TestRowSort(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 40 {
		var jobs []document.Job
		for i := range r.IntN(60) {
			jobs = append(jobs, document.Job{ID: fmt.Sprintf("%d.n%d", i, r.IntN(12)),
				Name: fmt.Sprint("j", r.IntN(12)), Tasks: uint32(r.IntN(4)),
				Owner: []string{"ann", "bob", ""}[r.IntN(3)]})
		}
		column := jobColumns()[r.IntN(len(jobColumns()))]
		order := func(text string) *rowSort[document.Job] {
			return &rowSort[document.Job]{text: text, key: column.key, descending: round%2 == 1,
				name: func(j *document.Job) string { return j.ID }}
		}
		text := column.name
		if round%2 == 1 {
			text = "-" + text
		}
		var got, want []string
		for after, first := "", true; first || after != ""; first = false {
			by := order(text)
			if err := by.begin(1+r.IntN(7), after); err != nil {
				t.Fatal(err)
			}
			r.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
			for _, j := range jobs {
				by.add(j)
			}
			var rows []document.Job
			rows, after = by.rows()
			for _, j := range rows {
				got = append(got, j.ID)
			}
		}
		slices.SortFunc(jobs, func(a, b document.Job) int {
			ka, kb := column.key(&a), column.key(&b)
			ka.Name, kb.Name = a.ID, b.ID
			return order(text).compare(ka, kb)
		})
		for _, j := range jobs {
			want = append(want, j.ID)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s: got %v, want %v", text, got, want)
		}
	}
	if k := numberKey(math.Inf(1)); math.IsInf(k.Number, 0) || numberKey(math.NaN()).Number != 0 {
		t.Errorf("a key is %v, which JSON has not", k.Number)
	}
	for _, bad := range []string{"x", "name.", "name.e30x", "owner.eyJpZCI6IjEifQ", "-name.eyJpZCI6IjEifQ",
		"name.bnVsbA"} {
		by := &rowSort[document.Job]{text: "name"}
		if by.begin(1, bad) == nil {
			t.Errorf("the cursor %q is accepted", bad)
		}
	}
}

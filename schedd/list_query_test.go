package schedd

import (
	"fmt"
	"slices"
	"testing"

	"github.com/roost-batch/roost/internal/wire"
)

// TestLongListing checks that the very many tasks of a job are listed in pieces, in
// order. No task is left out.
func TestLongListing(t *testing.T) {
	p := newPool(t)
	p.stop()
	p.node.Schedd.MaxQueued = 0
	p.start()
	const tasks = 2*2000 + 500
	p.submit("long", tasks, fmt.Sprintf(`HoldOnSubmit = true; ArrayIndexes = "10-%d:2"`, 10+2*(tasks-1)))
	p.submit("short", 2, "HoldOnSubmit = true")
	all := func(job, tasks, first, step int) (ids []string) {
		for i := range tasks {
			ids = append(ids, fmt.Sprintf("%d[%d].%s", job, first+i*step, hostName))
		}
		return ids
	}
	for _, c := range []struct {
		words []string
		limit uint32
		want  []string
	}{
		{[]string{"1"}, 0, all(1, tasks, 10, 2)},
		{[]string{"1[10-6000:20]"}, 0, all(1, 300, 10, 20)},
		{[]string{"2", "1", "2[1]"}, 0, append(append(all(2, 2, 0, 1), all(1, tasks, 10, 2)...), all(2, 1, 1, 1)...)},
		{[]string{"1"}, 2000 + 5, all(1, 2000+5, 10, 2)},
		{nil, 0, append(all(2, 2, 0, 1), all(1, tasks, 10, 2)...)},
	} {
		var got []string
		for _, row := range p.query(&wire.QueryRequest{Selection: &wire.Selection{Selectors: c.words}, Tasks: true,
			Limit: c.limit}) {
			got = append(got, row.GetId())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %d rows, want %d; the first %v", c.words, len(got), len(c.want), got[:min(len(got), 3)])
		}
	}
}

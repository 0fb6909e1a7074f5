package peers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// scriptedSchedd is a schedd that sends its rows at the given times after a query. Then
// it returns err. A time of 0 at the end of pauses means that it never sends anything
// more.
type scriptedSchedd struct {
	node   string
	rows   []int64 // times of submission, newest first
	pauses []time.Duration
	named  bool
	err    error
}

// mergedRows is what a user sees of speakers, of which the first is the user's own
// schedd.
func mergedRows(t *testing.T, limit int, speakers ...scriptedSchedd) (lines []string, took time.Duration, err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	m := &rowMerger{local: speakers[0].node, limit: limit, onTimeout: func(node string) {
		lines = append(lines, "mute "+node)
	}, send: func(row *wire.PoolRow) error {
		if s := row.GetSilent(); s != nil {
			lines = append(lines, s.GetNode()+" "+s.GetWhy())
		} else {
			lines = append(lines, row.GetStatus().GetId())
		}
		return nil
	}}
	for _, sp := range speakers {
		src := &rowSource{peerQuery: peerQuery{node: sp.node, isNamed: sp.named}, rows: make(chan ListRow, rowBuffer),
			remainingWait: peerTimeout}
		m.sources = append(m.sources, src)
		go func() {
			defer close(src.rows)
			for i, at := range sp.rows {
				if i < len(sp.pauses) {
					time.Sleep(sp.pauses[i])
				}
				if src.err = src.addRow(ctx, ListRow{SubmittedAt: at,
					Status: &wire.JobStatus{Id: fmt.Sprintf("%d.%s", at, sp.node), Submitted: at}}); src.err != nil {
					return
				}
			}
			if len(sp.pauses) > len(sp.rows) {
				<-ctx.Done()
			}
			src.err = sp.err
		}()
	}
	began := time.Now()
	err = m.mergeRows(ctx)
	took = time.Since(began)
	cancel()
	synctest.Wait()
	return lines, took, err
}

func TestMerge(t *testing.T) {
	second := []time.Duration{time.Second}
	never := []time.Duration{0, 0, 0, 0, 0}
	refused := &unreachableError{fmt.Errorf("%w: connection refused", errPeerSilent)}
	for _, test := range []struct {
		name     string
		limit    int
		speakers []scriptedSchedd
		want     string
		took     time.Duration
		err      error
	}{
		{"alone", 0, []scriptedSchedd{{node: "n1", rows: []int64{9, 5}}}, "9.n1 5.n1", 0, nil},
		{"by time", 0, []scriptedSchedd{{node: "n1", rows: []int64{9, 5, 1}}, {node: "n2", rows: []int64{7, 6, 2}}},
			"9.n1 7.n2 6.n2 5.n1 2.n2 1.n1", 0, nil},
		{"limited", 3, []scriptedSchedd{{node: "n1", rows: []int64{9, 5, 1}}, {node: "n2", rows: []int64{7, 6, 2}}},
			"9.n1 7.n2 6.n2", 0, nil},
		{"own is slow", 0, []scriptedSchedd{{node: "n1", rows: []int64{9}, pauses: []time.Duration{time.Minute}},
			{node: "n2", rows: []int64{7}}}, "9.n1 7.n2", time.Minute, nil},
		{"one is dead", 0, []scriptedSchedd{{node: "n1", rows: []int64{9}},
			{node: "n2", rows: []int64{7}, pauses: second}, {node: "n3", pauses: never}},
			"mute n3, n3 did not answer within 2s, 9.n1 7.n2", 2 * time.Second, nil},
		{"two are dead", 0, []scriptedSchedd{{node: "n1", rows: []int64{9}}, {node: "n2", pauses: never},
			{node: "n3", pauses: never}},
			"mute n2, n2 did not answer within 2s, mute n3, n3 did not answer within 2s, 9.n1", 2 * time.Second, nil},
		{"one dies", 0, []scriptedSchedd{{node: "n1", rows: []int64{9, 1}},
			{node: "n2", rows: []int64{7}, pauses: never}},
			"9.n1 7.n2, mute n2, n2 did not answer within 2s, 1.n1", 2 * time.Second, nil},
		{"refused", 0, []scriptedSchedd{{node: "n1", rows: []int64{9}}, {node: "n2", err: refused}},
			"n2 did not answer: connection refused, 9.n1", 0, nil},
		{"named and refused", 0, []scriptedSchedd{{node: "n1"}, {node: "n2", named: true, err: refused}},
			"n2 did not answer: connection refused", 0, nil},
		{"not there", 0, []scriptedSchedd{{node: "n1"}, {node: "n2", named: true, err: roost.NotFound}}, "", 0,
			roost.NotFound},
		{"own has an error", 0, []scriptedSchedd{{node: "n1", err: roost.Invalid}, {node: "n2", rows: []int64{1}}}, "",
			0, roost.Invalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lines, took, err := mergedRows(t, test.limit, test.speakers...)
				want := strings.FieldsFunc(strings.NewReplacer(".n1 ", ".n1,", ".n2 ", ".n2,").Replace(test.want),
					func(r rune) bool {
						return r == ','
					})
				for i := range want {
					want[i] = strings.TrimSpace(want[i])
				}
				if !slices.Equal(lines, want) || !errors.Is(err, test.err) || took != test.took {
					t.Errorf("got %q after %v, %v; want %q after %v, %v", lines, took, err, want, test.took, test.err)
				}
			})
		})
	}
}

// TestLongListsAreWhole checks that a long list is complete if its schedd never pauses
// for long. The merged rows of any number of schedds are sorted.
func TestLongListsAreWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := scriptedSchedd{node: "n9", pauses: []time.Duration{0}}
		speakers := []scriptedSchedd{{node: "n0"}, dead}
		var all []int64
		for i := range 4 {
			s := scriptedSchedd{node: fmt.Sprintf("n%d", i+1)}
			for range 2000 {
				s.rows = append(s.rows, rand.Int64N(1<<40))
				s.pauses = append(s.pauses, time.Duration(rand.Int64N(int64(2*time.Millisecond))))
			}
			s.pauses = s.pauses[:len(s.rows)]
			slices.Sort(s.rows)
			slices.Reverse(s.rows)
			all = append(all, s.rows...)
			speakers = append(speakers, s)
		}
		lines, took, err := mergedRows(t, 0, speakers...)
		if err != nil || len(lines) != len(all)+2 || took > 2*time.Second+time.Duration(len(all))*rowCredit {
			t.Fatalf("%d lines of %d after %v, %v", len(lines), len(all)+2, took, err)
		}
		slices.Sort(all)
		slices.Reverse(all)
		for i, line := range lines[2:] {
			if !strings.HasPrefix(line, fmt.Sprintf("%d.", all[i])) {
				t.Fatalf("row %d is %s, want %d", i, line, all[i])
			}
		}
	})
}

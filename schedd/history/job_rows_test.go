package history

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/queue/adtext"
	"github.com/roost-batch/roost/schedd/table"
)

// TestRows checks that rows are returned as added, with the record's ad on request. The
// history must build the row of a record without one, and delete the row with the record.
func TestRows(t *testing.T) {
	h := open(t, t.TempDir())
	records := newEndedJobs(t, 6)
	for i := range records {
		if i != 2 {
			records[i].Row = &table.JobRow{Seq: records[i].Seq, Owner: "alice", UID: 1000, Submitted: int64(i),
				IsArray: i == 1, IsFinal: true, Text: adtext.Plain(fmt.Sprint("text ", i))}
		}
	}
	if err := h.Add(records); err != nil {
		t.Fatal(err)
	}
	w := RowFilter{MakeRow: func(past *queue.Queue, seq uint64) *table.JobRow {
		st, _ := past.Status(seq)
		return &table.JobRow{Owner: st.Owner, Text: adtext.Plain("made")}
	}}
	for i := range records {
		got, err := h.Row(records[i].Seq, w)
		if err != nil {
			t.Fatal(err)
		}
		if want := records[i].Row; want == nil && got.Text.String() != "made" ||
			want != nil && !reflect.DeepEqual(got, want) {
			t.Errorf("row %d: got %v, want %v", i, got, want)
		}
	}
	numbers := func(from uint64, most int, w RowFilter) (out []uint64) {
		rows, err := h.Rows(from, most, w)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if out = append(out, r.Seq); w.Ads != (r.Ad.String() != "") {
				t.Errorf("the ad of row %d is %q", r.Seq, r.Ad)
			}
		}
		return out
	}
	ads := w
	ads.Ads = true
	some := w
	some.Owners = []string{"alice", "ali", "alice", "bob"}
	if got := fmt.Sprint(numbers(0, 4, w), numbers(4, 9, ads), numbers(2, 3, some),
		numbers(7, 3, some)); got != "[1 2 3 4] [4 5 6] [2 3 4] []" {
		t.Errorf("got %s", got)
	}
	if err := h.Remove(1, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Row(2, w); err == nil {
		t.Error("what was forgotten has a row")
	}
	if got := fmt.Sprint(numbers(0, 9, w)); got != "[3 4 5 6]" {
		t.Errorf("got %s", got)
	}
}

// TestRecent checks that jobs are found by when they entered the history. Each must be
// found once, however often it was added, and not after its deletion.
func TestRecent(t *testing.T) {
	h := open(t, t.TempDir())
	records := newEndedJobs(t, 6)
	for i := range records {
		records[i].Ended = time.Unix(int64(100+10*i), 0)
	}
	if err := h.Add(records); err != nil {
		t.Fatal(err)
	}
	records[0].Ended = time.Unix(200, 0) // a crash before it left the queue
	if err := h.Add(records[:1]); err != nil {
		t.Fatal(err)
	}
	recent := func(since int64) string {
		seqs, err := h.Recent(time.Unix(since, 0))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := h.RowsOf(append(seqs, 99), RowFilter{MakeRow: func(*queue.Queue, uint64) *table.JobRow {
			return &table.JobRow{}
		}})
		if err != nil || len(rows) != len(seqs) {
			t.Fatalf("%d rows of %d jobs: %v", len(rows), len(seqs), err)
		}
		return fmt.Sprint(seqs)
	}
	if got := recent(0) + recent(130) + recent(151) + recent(201); got != "[1 2 3 4 5 6][1 4 5 6][1][]" {
		t.Errorf("got %s", got)
	}
	if err := h.Remove(1, 5); err != nil {
		t.Fatal(err)
	}
	if got := recent(0) + recent(130); got != "[2 3 4 6][4 6]" {
		t.Errorf("after some were forgotten: got %s", got)
	}
}

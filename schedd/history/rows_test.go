package history

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/table"
)

// Rows are what was added, with the ad of the record where it is wanted; a record without one has it made; what is forgotten has none.
func TestRows(t *testing.T) {
	h := open(t, t.TempDir())
	records := past(t, 6)
	for i := range records {
		if i != 2 {
			records[i].Row = &table.Row{Seq: records[i].Seq, Owner: "alice", UID: 1000, Submitted: int64(i), Array: i == 1, Final: true, Text: []byte(fmt.Sprint("text ", i))}
		}
	}
	if err := h.Add(records); err != nil {
		t.Fatal(err)
	}
	w := Wish{Make: func(past *queue.Queue, seq uint64) *table.Row {
		st, _ := past.Status(seq)
		return &table.Row{Owner: st.Owner, Text: []byte("made")}
	}}
	for i := range records {
		got, err := h.Row(records[i].Seq, w)
		if err != nil {
			t.Fatal(err)
		}
		if want := records[i].Row; want == nil && string(got.Text) != "made" || want != nil && !reflect.DeepEqual(got, want) {
			t.Errorf("row %d: got %v, want %v", i, got, want)
		}
	}
	numbers := func(from uint64, most int, w Wish) (out []uint64) {
		rows, err := h.Rows(from, most, w)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if out = append(out, r.Seq); w.Ads != (r.Ad != "") {
				t.Errorf("the ad of row %d is %q", r.Seq, r.Ad)
			}
		}
		return out
	}
	ads := w
	ads.Ads = true
	some := w
	some.Owners = []string{"alice", "ali", "alice", "bob"}
	if got := fmt.Sprint(numbers(0, 4, w), numbers(4, 9, ads), numbers(2, 3, some), numbers(7, 3, some)); got != "[1 2 3 4] [4 5 6] [2 3 4] []" {
		t.Errorf("got %s", got)
	}
	if err := h.Forget(1, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Row(2, w); err == nil {
		t.Error("what was forgotten has a row")
	}
	if got := fmt.Sprint(numbers(0, 9, w)); got != "[3 4 5 6]" {
		t.Errorf("got %s", got)
	}
}

package query

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

func TestParseChange(t *testing.T) {
	for _, text := range []string{
		`{"rate":{"from":"2026-01-01T00:00:00Z","rule":"sum","core_hour":0.02,"bands":{"free":0}}}`,
		`{"rate":{"from":"","rule":"dominant","machine_cores":64,"core_hour":1}}`,
		`{"rerate":"2026-01-01T00:00:00Z"}`,
		`{"request":"1","adjustment":{"payer":{"project":"x"},"month":"2026-03","amount":-12.5,"reason":"r"}}`,
		`{"budget":{"payer":{"user":"ann"},"from":"2026-01","to":"2026-12","amount":5,"hard":true}}`,
		`{"close":"2026-03"}`,
	} {
		c, err := ParseChange([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		again, err := json.Marshal(&c)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := ParseChange(again); err != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%s is written as %s, which is read as %+v, %v", text, again, back, err)
		}
	}
	for text, want := range map[string]string{
		`{}`:                                      "needs one",
		`{"close":"2026-03","rerate":""}`:         "needs one",
		`{"close":"March"}`:                       "2026-11",
		`{"drop":"2026-03"}`:                      "unknown field",
		`{"close":"2026-03"} {}`:                  "more than one value",
		`{"rate":{"rule":"flat","core_hour":1}}`:  "dominant, sum or max",
		`{"rate":{"rule":"sum","core_hour":1e3}}`: "write a number",
		`{"rate":{"rule":"sum","core_hour":-1}}`:  "from 0",
		`{"rate":{"rule":"sum","core_hour":1,"bands":{"best":1}}}`:                                       "band",
		`{"rate":{"rule":"sum","core_hour":1,"classes":{"":1}}}`:                                         "class",
		`{"rate":{"rule":"sum","core_hour":1,"machine_cores":-1}}`:                                       "cores",
		`{"adjustment":{"payer":{"project":"x"},"month":"2026-03","amount":1,"reason":""}}`:              "say why",
		`{"adjustment":{"payer":{"project":"x","user":"y"},"month":"2026-03","amount":1,"reason":"r"}}`:  "payer",
		`{"adjustment":{"payer":{"project":"x"},"amount":1,"reason":"r"}}`:                               "month",
		`{"adjustment":{"payer":{"project":"x"},"month":"2026-03","amount":1000000000000,"reason":"r"}}`: "at most",
		`{"budget":{"payer":{"user":"ann"},"from":"2026-12","to":"2026-01","amount":5}}`:                 "first and its last",
		`{"budget":{"payer":{"user":"ann"},"from":"2026-12","to":"2026-12","amount":-5}}`:                "from 0",
		`{"budget":{"payer":{},"from":"2026-12","to":"2026-12","amount":5}}`:                             "payer",
		`{"rate":{"group":"` + strings.Repeat("x", 300) + `","rule":"sum","core_hour":1}}`:               "bytes",
		`{"close":"` + strings.Repeat("x", maxQuery) + `"}`:                                              "at most",
	} {
		if _, err := ParseChange([]byte(text)); !errors.Is(err, roost.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: got %v, want %q", text, err, want)
		}
	}
}

// TestRateLine reads a rate back from its line.
func TestRateLine(t *testing.T) {
	r := accounting.Rate{ID: 3, Group: "physics", From: 1772323200000, Rule: accounting.RateMax, Core: 2500,
		Mem: roost.GiB, GPUs: 4, GPUMem: 80 * roost.GiB, CoreHour: 1, GiBHour: 20_000, GPUHour: 500_000,
		BandPermille: [4]int64{0, 1000, 1500, 1000}, ClassPermille: map[string]int64{"A100": 2000}, UsefulOnly: true,
		MonthlyGrant: 10 * accounting.Unit, By: "root@n1", Set: 5}
	text, err := json.Marshal(rateLine(&r))
	if err != nil {
		t.Fatal(err)
	}
	var l RateLine
	if err := json.Unmarshal(text, &l); err != nil {
		t.Fatal(err)
	}
	got, err := l.Rate()
	if got.ID = r.ID; err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("%s\ngot  %+v, %v\nwant %+v", text, got, err, r)
	}
}

// TestStatementOfOther holds that a user sees of a project's statement only their own
// lines, and no adjustment.
func TestStatementOfOther(t *testing.T) {
	st := accounting.Statement{Payer: accounting.Payer{Project: "ocean"}, Month: 24314,
		Lines:       []accounting.StatementLine{{Owner: "ann", Amount: 5}, {Owner: "bob", Amount: 7}},
		Adjustments: []accounting.Adjustment{{Amount: 100, Reason: "secret"}}}
	st.Close(3)
	if d, ok := statementDocument(&st, "ann"); !ok || !d.Partial || len(d.Lines) != 1 || d.Total != 5 ||
		len(d.Adjustments) != 0 || d.Grant != 0 {
		t.Errorf("ann is shown %+v, %v", d, ok)
	}
	if d, ok := statementDocument(&st, "eve"); ok {
		t.Errorf("eve is shown %+v", d)
	}
	if d, ok := statementDocument(&st, ""); !ok || d.Partial || len(d.Lines) != 2 || d.Total != 109 {
		t.Errorf("an administrator is shown %+v, %v", d, ok)
	}
	st.Payer = accounting.Payer{Owner: "ann"}
	if d, ok := statementDocument(&st, "ann"); !ok || d.Partial || d.Total != 109 {
		t.Errorf("who pays is shown %+v, %v", d, ok)
	}
}

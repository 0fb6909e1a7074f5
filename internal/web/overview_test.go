package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/web/view"
	"github.com/roost-batch/roost/internal/wire"
)

// get reads a view as JSON.
func (w *testWeb) get(path string, into any, cookie *http.Cookie) {
	w.Helper()
	w.forgetLimits()
	answer := w.do(as(w.request("GET", path, ""), cookie))
	if answer.Code != http.StatusOK {
		w.Fatalf("%s: %d %s", path, answer.Code, answer.Body)
	}
	if err := json.Unmarshal(answer.Body.Bytes(), into); err != nil {
		w.Fatalf("%s: %v: %s", path, err, answer.Body)
	}
}

// mixedAds are machines in all states.
var mixedAds = []string{
	`[Name = "a1"; State = "Claimed"; TotalCpus = 8; Cpus = 2; ReclaimedCpus = 3; TotalGpus = 2; Gpus = 1; Rack = "r1"]`,
	`[Name = "a2"; State = "Unclaimed"; TotalCpus = 8; Cpus = 8; Rack = "r2"]`,
	`[Name = "a3"; State = "Unclaimed"; TotalCpus = 4; Cpus = 4; Rack = "r1"]`,
	`[Name = "d1"; State = "Owner"; TotalCpus = 16; Cpus = 16; OwnerBusyReason = "input 3 s ago"]`,
}

// TestOverviewStates holds the amounts by state against the machines.
func TestOverviewStates(t *testing.T) {
	w := newTestWeb(t)
	w.schedd.cell = map[string]string{"drain": `[{"name":"a3","object":{"node":"a3"}}]`}
	w.schedd.ads = mixedAds
	cookie := w.logIn("ann")
	var o view.Overview
	w.get("/v1/overview", &o, cookie)
	want := view.ResourceStates{Total: 36, Held: 6, Free: 10, Owner: 16, Drained: 4, Reclaimed: 3}
	if o.Cores != want || o.GPUs != (view.ResourceStates{Total: 2, Held: 1, Free: 1}) {
		t.Errorf("cores %+v, want %+v; GPUs %+v", o.Cores, want, o.GPUs)
	}
	if len(o.Waiting) != 2 || o.Waiting[0] != (view.WaitReason{Reason: "busy", Tasks: 3}) || len(o.Oldest) != 1 ||
		o.Oldest[0].ID != "1.n1" {
		t.Errorf("waiting %+v, the oldest %+v", o.Waiting, o.Oldest)
	}
	answer := w.do(as(w.request("GET", "/", ""), cookie))
	if text := answer.Body.String(); !strings.Contains(text, "16 with owners") ||
		!strings.Contains(text, "Machines are busy") || strings.Contains(text, "3 s ago") {
		t.Errorf("the page: %s", text)
	}
}

// TestOverviewOfSchedds holds the numbers of a pool with several schedds, one of which
// does not answer.
func TestOverviewOfSchedds(t *testing.T) {
	w := newTestWeb(t)
	w.schedd.pool = &wire.HealthReply{PoolSchedds: 3, SilentSchedds: []string{"lost"}, PoolWaits: &wire.WaitSummary{
		QueuedTasks: 50, RunningTasks: 7, Waiting: []*wire.WaitReasonCount{{Reason: "busy", Tasks: 40}},
		Oldest: []*wire.OldestWait{{Band: "batch", Id: "5.far", Since: 1e18}}}}
	cookie := w.logIn("ann")
	var o view.Overview
	w.get("/v1/overview", &o, cookie)
	if o.Queued != 50 || o.Running != 7 || o.Schedds != 3 || len(o.Silent) != 1 ||
		len(o.Waiting) != 1 || o.Waiting[0] != (view.WaitReason{Reason: "busy", Tasks: 40}) ||
		len(o.Oldest) != 1 || o.Oldest[0].ID != "5.far" {
		t.Errorf("got %+v", o)
	}
	text := w.do(as(w.request("GET", "/", ""), cookie)).Body.String()
	if !strings.Contains(text, "with the tasks of 3 schedds") || !strings.Contains(text, "do not answer: lost.") {
		t.Errorf("the page: %s", text)
	}
}

// TestCalibration shows how far off the estimates of starts of the pool were.
func TestCalibration(t *testing.T) {
	w := newTestWeb(t)
	w.schedd.pool = &wire.HealthReply{PoolSchedds: 2, SilentSchedds: []string{"lost"},
		PoolWaits: &wire.WaitSummary{StartErrors: []*wire.StartErrors{
			{Certainty: "walltime", Starts: []uint64{0, 0, 0, 8}, Late: 2}, {Certainty: "<b>", Starts: []uint64{1}}}}}
	cookie := w.logIn("ann")
	var d view.Calibration
	w.get("/v1/calibration", &d, cookie)
	if len(d.Estimates) != 2 || d.Schedds != 2 || d.Estimates[0].Starts != 8 || d.Estimates[0].Late != 2 ||
		d.Estimates[0].P50 != 6 || len(d.Silent) != 1 {
		t.Errorf("got %+v", d)
	}
	r := as(w.request("GET", "/calibration", ""), cookie)
	r.Header.Set("Accept", "text/html")
	text := w.do(r).Body.String()
	for _, want := range []string{"each of the 2 schedds", "Walltimes of the tasks before it", "25 %", "&lt;b&gt;",
		"lost"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q: %s", want, text)
		}
	}
}

// TestOverviewSize holds that the overview of a large pool with all its nodes silent is
// short.
func TestOverviewSize(t *testing.T) {
	w := newTestWeb(t)
	var ads []string
	for i := range 10_000 {
		w.schedd.bad = append(w.schedd.bad, fmt.Sprintf("node n%d does not answer", i))
		ads = append(ads, fmt.Sprintf(`[Name = "n%d"; State = "Claimed"; TotalCpus = 8; Cpus = 0]`, i))
	}
	w.schedd.ads = ads
	cookie := w.logIn("ann")
	for _, path := range []string{"/", "/v1/overview"} {
		r := as(w.request("GET", path, ""), cookie)
		r.Header.Set("Accept", "text/html, application/json")
		answer := w.do(r)
		if n := answer.Body.Len(); n > 20_000 || !strings.Contains(answer.Body.String(), "and 9981 more") {
			t.Errorf("%s: %d bytes: %.3000s", path, n, answer.Body)
		}
	}
}

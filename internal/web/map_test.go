package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/web/view"
)

// TestMap holds the bytes of the map against the machines, in the order of their names.
func TestMap(t *testing.T) {
	w := newTestWeb(t)
	w.schedd.ads = append(mixedAds, `[Name = "a10"; State = "Claimed"; TotalCpus = 2; Cpus = 0; Rack = "r1";
		Memory = 3072; TotalMemory = 4096]`)
	w.schedd.cell = map[string]string{"drain": `[{"name":"a3","object":{"node":"a3"}}]`}
	w.schedd.text = "a2" // where job 1 runs
	cookie := w.logIn("ann")
	for _, c := range []struct{ query, names, bytes string }{
		{"", ":d1 r1:a1,a3,a10 r2:a2", "[3 0 255 255 2 191 255 127 4 0 255 255 2 254 64 255 1 0 255 255]"},
		{"?by=none", ":a1,a2,a3,a10,d1", "[2 191 255 127 1 0 255 255 4 0 255 255 2 254 64 255 3 0 255 255]"},
		{"?by=none&job=1.n1", ":a1,a2,a3,a10,d1", "[2 191 255 127 129 0 255 255 4 0 255 255 2 254 64 255 3 0 255 255]"},
	} {
		var m view.NodeMap
		w.get("/v1/map/nodes"+c.query, &m, cookie)
		var names []string
		for _, g := range m.Groups {
			names = append(names, g.Name+":"+strings.Join(g.Nodes, ","))
		}
		answer := w.do(as(w.request("GET", "/v1/map"+c.query, ""), cookie))
		got := fmt.Sprint(answer.Body.Bytes())
		if strings.Join(names, " ") != c.names || got != c.bytes ||
			answer.Header().Get("Roost-Map-Order") != m.Order || m.Order == "" {
			t.Errorf("%s: names %q, bytes %s, order %q", c.query, names, got, m.Order)
		}
	}
	w.forgetLimits()
	if answer := w.do(as(w.request("GET", "/v1/map?by=owner", ""), cookie)); answer.Code != http.StatusBadRequest {
		t.Errorf("by=owner: %d %s", answer.Code, answer.Body)
	}
	for _, path := range []string{"/map?owner=ann", "/v1/map/nodes"} {
		answer := w.do(as(w.request("GET", path, ""), cookie))
		if text := answer.Body.String(); answer.Code != http.StatusOK || strings.Contains(text, "3 s ago") {
			t.Errorf("%s: %d, it may say when an owner was there: %s", path, answer.Code, text)
		}
	}
	var list view.NodeList
	w.get("/v1/nodes?rack=r1", &list, cookie)
	if list.Total != 3 || len(list.Nodes) != 3 || list.Nodes[2].Name != "a10" {
		t.Errorf("rack r1: %+v", list)
	}
}

// TestMapSize makes the map of 10,000 machines, which is 40 kB.
func TestMapSize(t *testing.T) {
	w := newTestWeb(t)
	for i := range 10_000 {
		w.schedd.ads = append(w.schedd.ads, fmt.Sprintf(`[Name = "n%d"; State = "Claimed"; TotalCpus = 64; Cpus = %d;
			TotalMemory = 1024; Memory = %d; Rack = "r%d"]`, i, i%65, i%1024, i/40))
	}
	cookie := w.logIn("ann")
	w.do(as(w.request("GET", "/v1/nodes?limit=1", ""), cookie))
	for path, most := range map[string]int{"/v1/map": 40_000, "/map": 400_000} {
		began := time.Now()
		answer := w.do(as(w.request("GET", path, ""), cookie))
		took := time.Since(began)
		if n := answer.Body.Len(); n > most || answer.Code != http.StatusOK {
			t.Errorf("%s: %d, %d bytes", path, answer.Code, n)
		}
		t.Logf("%s: %d bytes in %v", path, answer.Body.Len(), took)
	}
}

package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/cellhistory"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/simchild"
	"github.com/roost-batch/roost/internal/web/view"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// pastWeb returns a web daemon with two checkpoints, and a simulator that says what it
// was asked.
func pastWeb(t *testing.T) (w *testWeb, dir string) {
	w = newTestWeb(t)
	dir = filepath.Join(w.dir, "checkpoints")
	for i, text := range []string{"monday", "tuesday"} {
		at := time.Date(2026, 11, 23+i, 14, 0, 0, 0, time.UTC)
		if err := cellhistory.Write(dir, at, []byte(text+"\n"), 0); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(w.dir, "simulator")
	script := "#!/bin/sh\nread cell\nprintf '{\"v\":1,\"at\":\"2026-11-23T14:00:00Z\",\"leader\":\"%s %s\"," +
		"\"nodes\":[{\"name\":\"<b>n1\",\"state\":\"claimed\",\"rack\":\"r7\",\"class\":\"x86_64\"," +
		"\"cpus\":{\"free\":1,\"total\":4}}]}' \"$*\" \"$cell\"\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	w.server.node.Web.Checkpoints, w.server.simulator = dir, simchild.Simulator{Program: program}
	w.forgetLimits()
	return w, dir
}

// TestPast holds the list of checkpoints, and that a page of one says that it is past.
func TestPast(t *testing.T) {
	w, _ := pastWeb(t)
	cookie := w.logIn("ann")
	var l view.CheckpointList
	w.get("/v1/past", &l, cookie)
	if len(l.Checkpoints) != 2 || l.Checkpoints[1].Name != "20261124T140000Z" {
		t.Errorf("the list is %+v", l)
	}
	var cell cellhistory.PastCell
	w.get("/v1/past/20261124T140000Z", &cell, cookie)
	if cell.Leader != "sim show --json -- - tuesday" || len(cell.Nodes) != 1 {
		t.Errorf("got %+v", cell)
	}
	answer := w.do(as(w.request("GET", "/past?n=0", ""), cookie))
	if to := answer.Header().Get("Location"); answer.Code != http.StatusSeeOther || to != "/past/20261123T140000Z" {
		t.Errorf("the slider leads to %d %q", answer.Code, to)
	}
	for path, want := range map[string]string{"/past": "Past instants", "/past?n=7": "Past instants",
		"/past?n=-1": "Past instants", "/past/20261123T140000Z": "After: ",
		"/past/20261124T140000Z": "&lt;b&gt;n1",
		// claimed, three of four cores held, no memory, no GPUs
		"/past/20261124T140000Z?by=rack":  `data-bytes="Ar///w==" data-groups="[{&#34;name&#34;:&#34;r7&#34;,`,
		"/past/20261124T140000Z?by=class": `href="/nodes?class=x86_64"`} {
		w.forgetLimits()
		r := as(w.request("GET", path, ""), cookie)
		r.Header.Set("Accept", "text/html")
		if answer := w.do(r); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), want) {
			t.Errorf("%s: %d %s, want %q", path, answer.Code, answer.Body, want)
		}
	}
}

// TestW7Past asks for what is no checkpoint: paths, links, pipes, and files that are too
// long.
func TestW7Past(t *testing.T) {
	w, dir := pastWeb(t)
	secret := filepath.Join(w.dir, "secret.cell")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "20261101T000000Z.cell")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "20261102T000000Z.cell"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "20261103T000000Z.cell"), 0o700); err != nil {
		t.Fatal(err)
	}
	long, err := os.Create(filepath.Join(dir, "20261104T000000Z.cell"))
	if err != nil {
		t.Fatal(err)
	}
	defer long.Close()
	if err := long.Truncate(cellhistory.MaxBytes + 1); err != nil {
		t.Fatal(err)
	}
	cookie := w.logIn("ann")
	for name, want := range map[string]int{"20261101T000000Z": 404, "20261102T000000Z": 404, "20261103T000000Z": 404,
		"20261104T000000Z": http.StatusInsufficientStorage, "20261105T000000Z": 404, "..%2fsecret": 404,
		"%2e%2e%2fsecret.cell": 404, "20261123T140000Z.cell": 404, "20261399T990000Z": 404,
		"20261123T140000Z%00": 404, "2026-11-23": 404, strings.Repeat("2", 5000): 404} {
		for _, path := range []string{"/v1/past/", "/past/"} {
			w.forgetLimits()
			answer := w.do(as(w.request("GET", path+name, ""), cookie))
			if answer.Code != want && (want != http.StatusInsufficientStorage || answer.Code < 400) ||
				strings.Contains(answer.Body.String(), "secret ") {
				t.Errorf("%s%.40s: %d %s, want %d", path, name, answer.Code, answer.Body, want)
			}
		}
	}
}

// hostilePast stores a checkpoint of which the simulator says payloads in every string.
func (w *testWeb) hostilePast() {
	w.Helper()
	dir := filepath.Join(w.dir, "checkpoints")
	at := time.Date(2026, 11, 28, 14, 0, 0, 0, time.UTC)
	if err := cellhistory.Write(dir, at, []byte("cell\n"), 0); err != nil {
		w.Fatal(err)
	}
	texts := hostileText{payloads: payloads()}
	cell := cellhistory.PastCell{At: at, Leader: texts.take(), Program: texts.take(),
		SilentSchedds: []string{texts.take(), texts.take()}}
	for range 12 {
		cell.Nodes = append(cell.Nodes, document.Node{Name: texts.take(), State: texts.take(), Drain: texts.take()})
		cell.Shares.Submitters = append(cell.Shares.Submitters, ledger.SubmitterUsage{User: texts.take(),
			Group: texts.take()})
		cell.Waiting = append(cell.Waiting, cellhistory.PastRequest{Jobs: []string{texts.take()}, Owner: texts.take(),
			Band: texts.take(), Tasks: 1, Why: texts.take(), Advice: []string{texts.take()}})
	}
	text, err := json.Marshal(cell)
	if err != nil {
		w.Fatal(err)
	}
	answer, program := filepath.Join(w.dir, "answer.json"), filepath.Join(w.dir, "simulator")
	script := "#!/bin/sh\n/bin/cat >/dev/null\nexec /bin/cat " + answer + "\n"
	if err := errors.Join(os.WriteFile(answer, text, 0o600), os.WriteFile(program, []byte(script), 0o755)); err != nil {
		w.Fatal(err)
	}
	w.server.node.Web.Checkpoints, w.server.simulator = dir, simchild.Simulator{Program: program}
	w.forgetLimits()
}

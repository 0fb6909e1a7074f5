package web

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/web/view"
	"github.com/roost-batch/roost/internal/wire"
)

// TestSecretsPage checks which jobs use each secret, in JSON and as a page. A job of
// another node, or of another user, has other secrets of that name.
func TestSecretsPage(t *testing.T) {
	w := newTestWeb(t)
	w.schedd.cell = map[string]string{"secret": `[
		{"name":"db","owner":"ann","hosts":["n1"],"version":2,"bytes":7,
			"versions":[{"version":2,"at":"2026-03-01T12:00:00Z","by":"ann@n1"}],"sealed":"c2VzYW1l"},
		{"name":"physics/db","group":"physics","version":1,"bytes":9,"versions":[]}]`}
	job := func(id, owner, secret string) *wire.JobStatus {
		return &wire.JobStatus{Id: id, Owner: owner, State: "running", Tasks: 1,
			Counts: map[string]uint32{"running": 1}, Ad: `[Secrets = {[` + secret + `]}]`}
	}
	w.schedd.rows = []*wire.JobStatus{job("1.n1", "ann", `Name = "db"`), job("2.n1", "bob", `Name = "db"`),
		job("3.n2", "ann", `Name = "db"`), job("4.n1", "bob", `Name = "db"; Group = "physics"`),
		job("5.n1", "bob", `Name = "db"; Group = "chemistry"`)}
	cookie := w.logIn("ann")
	text := w.do(as(w.request("GET", "/v1/secrets", ""), cookie)).Body.String()
	var list view.SecretList
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Secrets) != 2 ||
		strings.Join(list.Secrets[0].Jobs, " ") != "1.n1" || strings.Join(list.Secrets[1].Jobs, " ") != "4.n1" ||
		list.Secrets[0].Version != 2 || len(list.Unreachable) != 1 {
		t.Errorf("got %v, %s", err, text)
	}
	page := w.do(as(w.request("GET", "/secrets", ""), cookie)).Body.String()
	for _, want := range []string{"physics/db", "ann at n1", "all in the group physics", `href="/jobs/4.n1"`, "ann@n1"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s: %s", want, page)
		}
	}
	for _, answer := range []string{text, page} {
		for _, not := range []string{"sealed", "c2VzYW1l", "5.n1"} {
			if strings.Contains(answer, not) {
				t.Errorf("it has %s: %s", not, answer)
			}
		}
	}
	if answer := w.do(w.request("GET", "/v1/secrets", "")); answer.Code != 401 {
		t.Errorf("without a login: %d", answer.Code)
	}
}

// TestCronPage checks the list of schedules, in JSON and as a page.
func TestCronPage(t *testing.T) {
	w := newTestWeb(t)
	w.schedd.ad = `[JobName = "x"; Schedule = [Cron = "0 3 * * *"; Zone = "UTC"]]`
	cookie := w.logIn("ann")
	var list view.CronList
	text := w.do(as(w.request("GET", "/v1/cron?all=1", ""), cookie)).Body.String()
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Schedules) != 1 ||
		list.Schedules[0].Job.ID != "1.n1" || len(list.Schedules[0].Schedule.Next) != 5 {
		t.Fatalf("got %v, %s", err, text)
	}
	page := w.do(as(w.request("GET", "/cron", ""), cookie)).Body.String()
	for _, want := range []string{`href="/jobs/1.n1"`, "0 3 * * *", "none yet", `href="/cron?all=1"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s: %s", want, page)
		}
	}
}

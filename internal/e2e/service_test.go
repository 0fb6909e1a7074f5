package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/document"
)

// webService is a service of two web servers in a pool. The files that they serve say of
// which revision they are.
type webService struct {
	*testing.T
	ctx    context.Context
	pool   *Pool
	python string
	dir    string // has a directory of files for each revision
	id     string
}

// namedTask is a task of a service as roost names lists it.
type namedTask struct {
	Index    int               `json:"index"`
	Attempt  uint32            `json:"attempt"`
	Revision uint32            `json:"revision"`
	State    string            `json:"state"`
	Address  string            `json:"address"`
	Ports    map[string]uint32 `json:"ports"`
	Machine  string            `json:"machine"`
}

// TestService has a pool keep two web servers running, which it checks and names. It
// starts a killed one again where it was, updates them one after the other, and stops
// them.
func TestService(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		t.Skip("services are NOT tested as a whole: this host has no /usr/bin/python3 as web server")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	dir, pool := openDir(t), smallPool(t)
	s := &webService{T: t, ctx: ctx, pool: pool, python: python, dir: dir}
	s.id = strings.TrimSpace(s.must("submit", s.jobFile(1)))
	s.must("wait", "--ready", "--timeout", "1m", s.id)
	begun := s.awaitNames("both tasks are ready", func(all []namedTask) bool { return bothReady(all, 1, 1) })
	s.serves(begun, "revision 1")
	again := s.killFirst(begun)
	s.update(again)
	s.remove()
}

// must runs a command that has to succeed.
func (s *webService) must(args ...string) string {
	s.Helper()
	stdout, stderr, code := s.pool.Command(s.ctx, args...)
	if code != 0 {
		s.Fatalf("roost %s: %d, %s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

// jobFile writes the job file of a revision, and the files that it serves.
func (s *webService) jobFile(revision int) string {
	s.Helper()
	files := filepath.Join(s.dir, fmt.Sprint(revision))
	text := fmt.Sprintf(`job "web" {
  command = [%q, "-m", "http.server", "--bind", "127.0.0.1", "--directory", %q, "${port.http}"]
  count   = 2
  memory  = "100MiB"

  service {
    drain = "1s"
  }

  port "http" {}

  check "up" {
    http  = "/revision"
    every = "1s"
    fails = 20
  }

  update {
    max_down = 1
    settle   = "0.1s"
  }
}
`, s.python, files)
	job := filepath.Join(s.dir, fmt.Sprintf("web%d.hcl", revision))
	err := os.Mkdir(files, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(files, "revision"), fmt.Appendf(nil, "revision %d", revision), 0o644)
	}
	if err == nil {
		err = os.WriteFile(job, []byte(text), 0o644)
	}
	if err == nil {
		err = os.Chmod(s.dir, 0o755)
	}
	if err != nil {
		s.Fatal(err)
	}
	return job
}

// names lists the tasks as clients find them.
func (s *webService) names() []namedTask {
	s.Helper()
	var reply struct{ Endpoints []namedTask }
	if err := json.Unmarshal([]byte(s.must("names", s.id, "--json")), &reply); err != nil {
		s.Fatal(err)
	}
	return reply.Endpoints
}

// awaitNames waits until the names are so.
func (s *webService) awaitNames(what string, is func([]namedTask) bool) (all []namedTask) {
	s.Helper()
	if !pollUntil(s.ctx, awaitTimeout, func() bool { all = s.names(); return is(all) }) {
		s.Fatalf("not within a minute: %s, but %+v\n%s", what, all, s.must("show", "--events", "0", s.id))
	}
	return all
}

// bothReady reports whether both tasks are ready in a revision, the first in an attempt.
func bothReady(all []namedTask, attempt, revision uint32) bool {
	return len(all) == 2 && all[0].Attempt == attempt && !slices.ContainsFunc(all, func(t namedTask) bool {
		return t.State != "ready" || t.Revision != revision || t.Machine == ""
	})
}

// serves fails unless each task answers at its address with a text.
func (s *webService) serves(all []namedTask, want string) {
	s.Helper()
	for _, t := range all {
		r, err := http.NewRequestWithContext(s.ctx, "GET", fmt.Sprintf("http://%s:%d/revision", t.Address,
			t.Ports["http"]), nil)
		if err != nil {
			s.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			s.Fatalf("task %d: %v", t.Index, err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || string(text) != want {
			s.Errorf("task %d answers %q, %v; want %q", t.Index, text, err, want)
		}
	}
}

// record reads what roost show says of the job, or of a task of it.
func (s *webService) record(id string) (job document.Job, events []document.Event) {
	s.Helper()
	var reply struct {
		Job    document.Job
		Events []document.Event
	}
	if err := json.Unmarshal([]byte(s.must("show", "--json", "--events", "0", id)), &reply); err != nil {
		s.Fatal(err)
	}
	return reply.Job, reply.Events
}

// killFirst kills the process of the first task. It is started again on the same machine
// and port.
func (s *webService) killFirst(before []namedTask) (after []namedTask) {
	s.Helper()
	port, killed := fmt.Sprintf("\x00%d\x00", before[0].Ports["http"]), 0
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		text, _ := os.ReadFile(path)
		var pid int
		if line := string(text); strings.HasPrefix(line, s.python+"\x00") && strings.Contains(line, s.dir) &&
			strings.HasSuffix(line, port) {
			if _, err := fmt.Sscanf(path, "/proc/%d/", &pid); err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
				killed++
			}
		}
	}
	if killed != 1 {
		s.Fatalf("killed %d processes of task 0", killed)
	}
	after = s.awaitNames("the killed task is ready again", func(all []namedTask) bool { return bothReady(all, 2, 1) })
	for i := range before {
		if after[i].Machine != before[i].Machine { // its port may be taken by a task of another test's pool
			s.Errorf("task %d was at %+v, and is at %+v", i, before[i], after[i])
		}
	}
	s.serves(after, "revision 1")
	task, _ := s.record(fmt.Sprintf("%s[0]", strings.Split(s.id, ".")[0]))
	if h := task.Service; h == nil || h.State != "ready" || h.Restarts != 1 || len(h.Checks) != 1 ||
		h.Checks[0].Result != "passed" || h.Checks[0].Since == "" || task.Attempt != 2 {
		s.Errorf("the killed task: attempt %d, %+v", task.Attempt, task.Service)
	}
	return after
}

// update gives the service another revision. At no time is more than one task down.
func (s *webService) update(before []namedTask) {
	s.Helper()
	s.must("update", s.jobFile(2))
	s.must("wait", "--update", "--timeout", "1m", s.id)
	after := s.awaitNames("both tasks are of revision 2", func(all []namedTask) bool { return bothReady(all, 3, 2) })
	s.serves(after, "revision 2")
	for i := range before {
		if after[i].Ports["http"] != before[i].Ports["http"] {
			s.Errorf("task %d was at %+v, and is at %+v", i, before[i], after[i])
		}
	}
	job, events := s.record(s.id)
	if u := job.Update; u == nil || u.State != "done" || u.Revision != 2 || u.Total() != 2 || job.Service == nil ||
		!job.Service.IsAsWanted() {
		s.Errorf("the update: %+v, %+v", job.Update, job.Service)
	}
	ready, updated := map[string]bool{}, false
	for _, e := range events {
		updated = updated || e.What == "revised"
		switch e.What {
		case "ready":
			ready[e.ID] = true
		case "assigned", "unready", "leaving":
			delete(ready, e.ID)
		}
		if updated && len(ready) == 0 {
			s.Errorf("no task is ready at event %d: %+v", e.Sequence, e)
		}
	}
	if !updated {
		s.Error("no event says that there is another revision")
	}
}

// remove ends the service. Its tasks leave before they end, and so do their names.
func (s *webService) remove() {
	s.Helper()
	s.must("rm", s.id)
	s.awaitNames("the names are gone", func(all []namedTask) bool { return len(all) == 0 })
	var events []document.Event
	var job document.Job
	if !pollUntil(s.ctx, awaitTimeout, func() bool { job, events = s.record(s.id); return job.State == "removed" }) {
		s.Fatalf("the service is not removed, but %+v", job)
	}
	last := map[string]string{} // event before the end of the last attempt
	for _, e := range events {
		if e.ID == s.id {
			continue
		}
		if e.What == "ended" || e.What == "leaving" {
			last[e.ID] += e.What + " "
		}
	}
	// each was stopped twice in order, for its update and for its removal
	for id, stops := range last {
		if stops != "leaving ended leaving ended " {
			s.Errorf("task %s: %s", id, stops)
		}
	}
	if len(last) != 2 {
		s.Errorf("stopped: %v", last)
	}
}

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// webBrowser is a browser or program that uses the web daemon of a pool.
type webBrowser struct {
	*testing.T
	ctx   context.Context
	http  http.Client
	url   string
	token string // an API token; empty: it has cookies
}

// call makes a request, and reads the answer into a value if that is wanted.
func (b *webBrowser) call(method, path string, body, into any, header ...string) int {
	b.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		b.Fatal(err)
	}
	r, err := http.NewRequestWithContext(b.ctx, method, b.url+path, bytes.NewReader(text))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := b.http.Do(r)
	if err != nil {
		b.Fatalf("%s %s: %v", method, path, err)
	}
	defer answer.Body.Close()
	reply, err := io.ReadAll(answer.Body)
	if err == nil && into != nil {
		err = json.Unmarshal(reply, into)
	}
	if err != nil {
		b.Fatalf("%s %s: %d %s: %v", method, path, answer.StatusCode, reply, err)
	}
	return answer.StatusCode
}

// TestWeb uses the pages and the API of a pool that roost up has started. Strangers get
// nothing. A user logs in by the link, submits, looks, changes and makes a token. With
// the web daemon dead, jobs are submitted and run as before.
func TestWeb(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	pool, err := Start(ctx, PoolOptions{Roost: program(t), Dir: t.TempDir(), Nodes: 1, CPUs: 2, Web: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Stop() })
	link, stderr, code := pool.Command(ctx, "web", "login")
	url, token, ok := strings.Cut(strings.TrimSpace(link), "/login#")
	// roost up prints its text when the pages are served, maybe after the schedd answers
	if code != 0 || !ok || !pollUntil(ctx, awaitTimeout, func() bool {
		return strings.Contains(pool.Output(), url+"/login#")
	}) {
		t.Fatalf("roost web login: %d %q %s; roost up printed\n%s", code, link, stderr, pool.Output())
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &webBrowser{T: t, ctx: ctx, http: http.Client{Jar: jar}, url: url}
	if code := b.call("GET", "/v1/jobs", nil, nil); code != http.StatusUnauthorized {
		t.Errorf("a stranger gets %d", code)
	}
	foreign, err := http.NewRequestWithContext(ctx, "GET", url+"/v1/jobs", nil)
	if err != nil {
		t.Fatal(err)
	}
	foreign.Host = "evil.example"
	if answer, err := b.http.Do(foreign); err != nil || answer.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("a foreign host: %v %+v", err, answer)
	}
	for _, want := range []int{http.StatusCreated, http.StatusForbidden} {
		if code := b.call("POST", "/v1/session", map[string]any{"token": token}, nil); code != want {
			t.Errorf("the link: got %d, want %d", code, want)
		}
	}
	b.useJobs(pool)
	b.useToken(pool)
	b.killWeb(pool)
}

// submitted is the answer to a submission.
type submitted struct {
	Jobs     []struct{ ID string }
	Repeated bool
}

// useJobs submits a job twice with one key, looks at it, and removes it.
func (b *webBrowser) useJobs(pool *Pool) {
	b.Helper()
	var first, again submitted
	file := map[string]any{"text": "job \"a\" {\n  command = [\"sh\", \"-c\", \"echo begun; sleep 600\"]\n}\n"}
	b.call("POST", "/v1/jobs", file, &first, "Idempotency-Key", "k1")
	b.call("POST", "/v1/jobs", file, &again, "Idempotency-Key", "k1")
	if len(first.Jobs) != 1 || first.Repeated || !again.Repeated || again.Jobs[0].ID != first.Jobs[0].ID {
		b.Fatalf("got %+v and %+v", first, again)
	}
	id := first.Jobs[0].ID
	var job struct {
		Job    struct{ State, Name string }
		Events []struct{ What string }
	}
	if !pollUntil(b.ctx, awaitTimeout, func() bool {
		b.call("GET", "/v1/jobs/"+id, nil, &job)
		return job.Job.State == "running"
	}) {
		b.Fatalf("the job is %+v", job)
	}
	shown, _, _ := pool.Command(b.ctx, "jobs", "--json")
	var list struct{ Jobs []json.RawMessage }
	var same struct{ Jobs []json.RawMessage }
	b.call("GET", "/v1/jobs", nil, &list)
	if err := json.Unmarshal([]byte(shown), &same); err != nil || len(list.Jobs) != 1 || len(same.Jobs) != 1 ||
		memberNames(list.Jobs[0]) != memberNames(same.Jobs[0]) {
		b.Errorf("roost jobs prints %s, and the API %s", shown, list.Jobs)
	}
	var refused struct {
		Status      int
		Diagnostics []struct{ Line, Column int }
	}
	if code := b.call("POST", "/v1/jobs", map[string]any{"text": "job \"a\" {\n  cpus = \"x\"\n}\n"}, &refused); code !=
		422 || len(refused.Diagnostics) == 0 || refused.Diagnostics[0].Line == 0 {
		b.Errorf("a mistake: got %d %+v", code, refused)
	}
	act := map[string]any{"verb": "rm", "select": []string{"all"}, "expect": 7}
	if code := b.call("POST", "/v1/acts", act, nil); code != http.StatusConflict {
		b.Errorf("another count is accepted: %d", code)
	}
	act["expect"] = 1
	if code := b.call("POST", "/v1/acts", act, nil); code != http.StatusOK {
		b.Errorf("rm: %d", code)
	}
	if !pollUntil(b.ctx, awaitTimeout, func() bool {
		b.call("GET", "/v1/jobs/"+id, nil, &job)
		return job.Job.State == "removed"
	}) {
		b.Errorf("the job is %+v", job)
	}
}

// memberNames are the names of a document's members.
func memberNames(text json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return "?"
	}
	for name := range members { // what a task uses comes and goes
		members[name] = nil
		if name == "usage" || name == "dumpable" {
			delete(members, name)
		}
	}
	names, _ := json.Marshal(members)
	return string(names)
}

// useToken makes an API token with the scope read, which may read and nothing else, and
// revokes its login.
func (b *webBrowser) useToken(pool *Pool) {
	b.Helper()
	secret, stderr, code := pool.Command(b.ctx, "web", "token", "add", "ci")
	program := &webBrowser{T: b.T, ctx: b.ctx, url: b.url, token: strings.TrimSpace(secret)}
	if code != 0 || program.call("GET", "/v1/nodes", nil, nil) != http.StatusOK {
		b.Fatalf("roost web token add: %d %s", code, stderr)
	}
	if code := program.call("POST", "/v1/acts", map[string]any{"verb": "rm"}, nil); code != http.StatusForbidden {
		b.Errorf("a token for read acts: %d", code)
	}
	var tokens struct{ Tokens []struct{ ID, Login string } }
	b.call("GET", "/v1/tokens", nil, &tokens)
	if len(tokens.Tokens) != 1 {
		b.Fatalf("got %+v", tokens)
	}
	if _, stderr, code := pool.Command(b.ctx, "logins", "rm", tokens.Tokens[0].Login); code != 0 {
		b.Fatalf("roost logins rm: %s", stderr)
	}
	if !pollUntil(b.ctx, awaitTimeout, func() bool {
		return program.call("GET", "/v1/logins", nil, nil) == http.StatusUnauthorized
	}) {
		b.Error("a token is good after its login was revoked")
	}
}

// killWeb stops the web daemon for good, as far as its master lets it, and runs a job
// meanwhile.
func (b *webBrowser) killWeb(pool *Pool) {
	b.Helper()
	state, err := pool.State()
	if err != nil {
		b.Fatal(err)
	}
	pid := 0
	for _, d := range state.Daemons {
		if d.Role == "web" {
			pid = d.PID
		}
	}
	if pid == 0 {
		b.Fatalf("no web daemon among %+v", state.Daemons)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		b.Fatal(err)
	}
	out, stderr, code := pool.Command(b.ctx, "run", "--", "echo", "without")
	if code != 0 || !strings.Contains(out, "without") {
		b.Errorf("with the web daemon stopped: %d %s", code, stderr)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		b.Fatal(err)
	}
	out, stderr, code = pool.Command(b.ctx, "run", "--", "echo", "dead")
	if code != 0 || !strings.Contains(out, "dead") {
		b.Errorf("with the web daemon dead: %d %s", code, stderr)
	}
	if !pollUntil(b.ctx, awaitTimeout, func() bool {
		answer, err := http.Get(b.url + "/readyz")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	}) {
		b.Error("its master has not started it again")
	}
	if text, err := os.ReadFile(fmt.Sprintf("%s/web/audit.log", pool.Dir)); err != nil ||
		bytes.Count(text, []byte("\n")) < 5 {
		b.Errorf("the log of writes: %v %s", err, text)
	}
}

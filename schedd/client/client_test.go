package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestMain is roost api, too: "api" as the only argument answers from a script.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "api" {
		serveScript()
		return
	}
	os.Exit(m.Run())
}

// scriptedAnswers has the output for the beginning of a command line. Its first line may
// be an exit status.
var scriptedAnswers = []struct{ line, output string }{
	{"submit --json --quiet --key", `{"v":1,"jobs":[{"id":"7.host","name":"fit","tasks":3}]}`},
	{"wait --json -- 7.host", "1\n" + `{"v":1,"job":{"id":"7.host","state":"running"}}` + "\n" +
		`{"v":1,"job":{"id":"7.host","state":"failed"}}` + "\n"},
	{"show --json --events 1 -- 7.host", `{"v":1,"job":{"id":"7.host","name":"fit","state":"failed","tasks":3,` +
		`"ended":"2026-11-21T12:00:00.5Z","counts":{"completed":3,"failed":1},"later":{"x":1}}}`},
	{"show --json --events 0 -- 7.host", `{"v":1,"job":{"id":"7.host"},"events":[` +
		`{"sequence":1,"time":"2026-11-21T11:00:00Z","id":"7.host","what":"submitted"},` +
		`{"sequence":2,"time":"2026-11-21T11:00:01Z","id":"7[1].host","attempt":1,"node":"n1","what":"started"}]}`},
	{"jobs --json --limit 0 --history --tasks --state failed -- 7.host",
		`{"v":1,"jobs":[{"id":"7[1].host","index":1,"state":"failed","exit":{"code":3,"cause":"exited"}}]}`},
	{"rm --yes --reason enough -- 7.host", "7.host: removed\n"},
	{"wait --json -- 9.host", "68\nroost: 9.host: not found"},
	{"echo", "ARGUMENTS"},
}

// serveScript answers requests at the same time, until there are no more.
func serveScript() {
	fmt.Println(`{"v":1,"protocol":1,"roost":"test"}`)
	var output sync.Mutex
	send := func(answer map[string]any) {
		line, _ := json.Marshal(answer)
		output.Lock()
		defer output.Unlock()
		fmt.Printf("%s\n", line)
	}
	cancels := map[string]chan bool{}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var r request
		json.Unmarshal(lines.Bytes(), &r)
		if r.Cancel {
			close(cancels[r.ID])
			continue
		}
		line, cancelled := strings.Join(r.Arguments, " "), make(chan bool)
		cancels[r.ID] = cancelled
		if line == "die" {
			os.Exit(1)
		}
		go func() {
			if line == "sleep" {
				<-cancelled
				send(map[string]any{"v": 1, "id": r.ID, "exit": 1, "error": "roost: canceled"})
				return
			}
			for _, a := range scriptedAnswers {
				if strings.HasPrefix(line, a.line) {
					answerScripted(send, r.ID, strings.ReplaceAll(a.output, "ARGUMENTS", line))
					return
				}
			}
			send(map[string]any{"v": 1, "id": r.ID, "exit": 64, "error": "roost: unknown command line " + line})
		}()
	}
}

func answerScripted(send func(map[string]any), id, text string) {
	var status int
	if first, rest, found := strings.Cut(text, "\n"); found {
		if n, err := strconv.Atoi(first); err == nil {
			status, text = n, rest
		}
	}
	failure := ""
	if strings.HasPrefix(text, "roost: ") {
		failure, text = text, ""
	}
	for len(text) > 0 { // in small parts, so that no line comes as a whole
		n := min(len(text), 40)
		send(map[string]any{"v": 1, "id": id, "out": text[:n]})
		text = text[n:]
	}
	send(map[string]any{"v": 1, "id": id, "exit": status, "error": failure})
}

func scriptedClient(t *testing.T) *Client {
	t.Helper()
	c := New(Options{Program: os.Args[0]})
	t.Cleanup(func() { c.Close() })
	return c
}

// TestWatch follows a job that fails. The exit status of the jobs is no error.
func TestWatch(t *testing.T) {
	var states []State
	ended, err := scriptedClient(t).Watch(t.Context(), func(j Job) { states = append(states, j.State) }, "7.host")
	if err != nil || len(ended) != 1 || fmt.Sprint(states) != "[running failed]" {
		t.Fatalf("%v, %v, %v", ended, states, err)
	}
	j := ended[0]
	if j.Succeeded() || !j.State.IsFinal() || j.Ended.UnixMilli() != 1795262400500 || !j.Started.IsZero() {
		t.Errorf("%+v", j)
	}
	var more struct{ Later struct{ X int } }
	if err := json.Unmarshal(j.Raw, &more); err != nil || more.Later.X != 1 {
		t.Errorf("members that are not known are lost: %s", j.Raw)
	}
}

// TestErrors holds the kinds of errors.
func TestErrors(t *testing.T) {
	c := scriptedClient(t)
	if _, err := c.Wait(t.Context(), "9.host"); !errors.Is(err, ErrNotFound) || err.Error() != "9.host: not found" {
		t.Errorf("%v", err)
	}
	if _, err := c.Job(t.Context(), "x"); !errors.Is(err, ErrInvalid) {
		t.Errorf("%v", err)
	}
	missing := New(Options{Program: "/nonexistent/roost"})
	if err := missing.Cancel(t.Context(), "", "1"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("%v", err)
	}
}

// TestCancelledContext holds that a call ends with its context.
func TestCancelledContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := scriptedClient(t).Run(ctx, "", func([]byte) error { return nil }, "sleep")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// TestRestart holds that a call fails if roost api ends, and that the next one starts
// another.
func TestRestart(t *testing.T) {
	c := scriptedClient(t)
	nothing := func([]byte) error { return nil }
	if err := c.Run(t.Context(), "", nothing, "die"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if err := c.Run(t.Context(), "", nothing, "echo"); err != nil {
		t.Errorf("%v", err)
	}
}

// TestManyCalls runs calls at the same time, each within the callback of another.
func TestManyCalls(t *testing.T) {
	c := scriptedClient(t)
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			want, got := fmt.Sprintf("echo %d", i), ""
			add := func(part []byte) error { got += string(part); return nil }
			err := c.Run(t.Context(), "", func([]byte) error {
				return c.Run(t.Context(), "", add, "echo", fmt.Sprint(i))
			}, "echo")
			if err != nil || got != want {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	group.Wait()
}

// TestJobFile holds the job file of a specification.
func TestJobFile(t *testing.T) {
	spec := JobSpec{Name: "fit", Command: []string{"./fit", "${x} \"q\"\n", "%{y}"}, Count: 3, CPUs: 0.5, Memory: 1500,
		Walltime: 90 * time.Second, Environment: map[string]string{"B": "2", "A": "1"}, DependsOn: []string{"6.host"},
		Hold: true, Settings: map[string]string{"priority": "5", "stdout": QuoteTemplate("out.${task.index}")}}
	want := `job "fit" {
  command = ["./fit", "$${x} \"q\"\n", "%%{y}"]
  count = 3
  cpus = 0.5
  depends_on = ["6.host"]
  environment = { "A" = "1", "B" = "2" }
  hold = true
  memory = "2K"
  priority = 5
  stdout = "out.${task.index}"
  walltime = "90s"
}
`
	if got := spec.jobFile(); got != want {
		t.Errorf("%s", got)
	}
	if got := (&JobSpec{Script: "true"}).jobFile(); got != "job \"job\" {\n  script = \"true\"\n}\n" {
		t.Errorf("%s", got)
	}
}

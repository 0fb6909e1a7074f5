package pipe

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// newPipe starts the command with commands for tests, and returns the ends of its pipes.
func newPipe(t *testing.T) (send func(line string), answers *json.Decoder, end func()) {
	t.Helper()
	in, requests := io.Pipe()
	replies, out := io.Pipe()
	all := func() []*frame.Command {
		return frame.WithCommonFlags([]*frame.Command{Command(), {Name: "say", MaxOperands: -1,
			Run: func(c *frame.Invocation) error {
				input, err := io.ReadAll(c.Stdin)
				fmt.Fprintf(c.Stdout, "%s\n%s", strings.Join(c.Args, " "), input)
				return err
			}}, {Name: "refuse", MaxOperands: -1, Run: func(*frame.Invocation) error {
			return frame.KindErrorf(roost.NotFound, "no such job")
		}}, {Name: "sleep", Run: func(c *frame.Invocation) error {
			<-c.Context.Done()
			return c.Context.Err()
		}}})
	}
	app := frame.NewApp(in, out, io.Discard, nil, all)
	ended := make(chan int, 1)
	go func() { ended <- app.Run(t.Context(), []string{"roost", "api"}); out.Close() }()
	end = func() {
		t.Helper()
		requests.Close()
		go io.Copy(io.Discard, replies)
		if status := <-ended; status != 0 {
			t.Errorf("exit status %d at the end of the requests", status)
		}
	}
	send = func(line string) { io.WriteString(requests, line+"\n") }
	answers = json.NewDecoder(bufio.NewReader(replies))
	var first greeting
	if err := answers.Decode(&first); err != nil || first.Protocol != 1 || first.Release != roost.Version {
		t.Fatalf("first line %+v, %v", first, err)
	}
	return send, answers, end
}

// finish reads the answers of a request that runs alone, to its last one.
func finish(t *testing.T, answers *json.Decoder, id string) (out []byte, status int, failure string) {
	t.Helper()
	for {
		var a answer
		if err := answers.Decode(&a); err != nil || a.Version != 1 || a.ID != id {
			t.Fatalf("answer %+v to %s, %v", a, id, err)
		}
		if a.Text != nil {
			out = append(out, *a.Text...)
		}
		out = append(out, a.Bytes...)
		if a.Exit != nil {
			return out, *a.Exit, a.Error
		}
	}
}

// TestRequests runs command lines one after the other.
func TestRequests(t *testing.T) {
	send, answers, end := newPipe(t)
	defer end()
	long := strings.Repeat("0123456789abcde\n", 10_000) + "no line feed"
	request, _ := json.Marshal(request{Version: 1, ID: "a.1", Arguments: []string{"say", "x"}, Input: long})
	send(string(request))
	if out, status, _ := finish(t, answers, "a.1"); status != 0 || string(out) != "x\n"+long {
		t.Errorf("got %d bytes and status %d, want %d bytes", len(out), status, len(long)+2)
	}
	for _, c := range []struct {
		line, id string
		status   int
		failure  string
	}{
		{`{"v":1,"id":"2","args":["refuse"]}`, "2", 68, "roost: no such job"},
		{`{"v":1,"id":"3","args":["nosuch"]}`, "3", 64, "unknown command"},
		{`{"v":2,"id":"4","args":["say"]}`, "4", 65, "version 2"},
		{`{"v":1,"id":"5"}`, "5", 65, "missing in args"},
		{`{"v":1,"id":"6","args":["api"]}`, "6", 65, "no further api"},
		{`{"v":1,"id":"a b","args":["say"]}`, "", 65, "needs an id"},
		{`nonsense`, "", 65, "not a request"},
	} {
		send(c.line)
		if _, status, failure := finish(t, answers, c.id); status != c.status || !strings.Contains(failure, c.failure) {
			t.Errorf("%s: status %d, %q", c.line, status, failure)
		}
	}
}

// TestOutputThatIsNotText holds that output comes back byte for byte.
func TestOutputThatIsNotText(t *testing.T) {
	var sent bytes.Buffer
	s := &server{output: &sent}
	o := &outputLines{server: s, id: "1"}
	want := append(bytes.Repeat([]byte{0xff, 'a'}, maxChunk), "\nb"...)
	for _, part := range [][]byte{want[:7], want[7:100], want[100:]} {
		o.Write(part)
	}
	o.flush()
	var got []byte
	for in := json.NewDecoder(&sent); in.More(); {
		var a answer
		if err := in.Decode(&a); err != nil {
			t.Fatal(err)
		}
		if a.Text != nil {
			got = append(got, *a.Text...)
		}
		got = append(got, a.Bytes...)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}

// TestCancel ends a command line that would never end, by its id and by the end of the
// requests.
func TestCancel(t *testing.T) {
	send, answers, end := newPipe(t)
	send(`{"v":1,"id":"1","args":["sleep"]}`)
	send(`{"v":1,"id":"1","args":["say"]}`)
	if _, status, failure := finish(t, answers, "1"); status != 65 || !strings.Contains(failure, "runs already") {
		t.Errorf("the same id again: status %d, %q", status, failure)
	}
	send(`{"v":1,"id":"1","cancel":true}`)
	if _, status, _ := finish(t, answers, "1"); status == 0 {
		t.Error("a command that was cancelled has exit status 0")
	}
	send(`{"v":1,"id":"1","cancel":true}`) // nothing is there to end
	send(`{"v":1,"id":"2","args":["sleep"]}`)
	end()
}

// TestBound holds that command lines beyond the bound are refused.
func TestBound(t *testing.T) {
	send, answers, end := newPipe(t)
	for i := range maxRunning + 1 {
		send(fmt.Sprintf(`{"v":1,"id":"%d","args":["sleep"]}`, i))
	}
	id := fmt.Sprint(maxRunning)
	if _, status, failure := finish(t, answers, id); status != 75 || !strings.Contains(failure, "run already") {
		t.Errorf("status %d, %q", status, failure)
	}
	end()
}

package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
)

const (
	protocol  = 1
	maxAnswer = 64 << 20 // bytes of a line
)

// connection is a process roost api, which runs command lines.
type connection struct {
	process *exec.Cmd
	ended   chan struct{} // closed when it has ended

	inputMutex sync.Mutex // serializes requests, which may block
	input      io.WriteCloser

	mutex sync.Mutex
	next  int
	calls map[string]*call // nil: it has ended
}

// call is a command line that runs.
type call struct {
	ready  chan struct{} // has an element whenever there is news
	mutex  sync.Mutex
	parts  [][]byte // output that was not read yet
	done   bool     // all parts are here
	status int      // once done
	text   string   // likewise: what it wrote to standard error
}

// put adds a part of the output, or the end. It never blocks: another call may wait for
// an answer behind this one.
func (c *call) put(change func()) {
	c.mutex.Lock()
	change()
	c.mutex.Unlock()
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// take returns the output that has come, and whether that was all.
func (c *call) take() (parts [][]byte, done bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	parts, c.parts = c.parts, nil
	return parts, c.done
}

// request and answer are lines of roost api, see roost-api(1).
type request struct {
	Version   int      `json:"v"`
	ID        string   `json:"id"`
	Arguments []string `json:"args,omitempty"`
	Input     string   `json:"input,omitempty"`
	Directory string   `json:"directory,omitempty"`
	Cancel    bool     `json:"cancel,omitempty"`
}

type answer struct {
	ID    string  `json:"id"`
	Text  *string `json:"out"`
	Bytes []byte  `json:"bytes"`
	Exit  *int    `json:"exit"`
	Error string  `json:"error"`
}

// connect starts roost api. It ends with its standard input.
func connect(o Options) (*connection, error) {
	program := o.Program
	if program == "" {
		program = os.Getenv("ROOST_PROGRAM")
	}
	if program == "" {
		program = "roost"
	}
	c := &connection{process: exec.Command(program, "api"), ended: make(chan struct{}), calls: map[string]*call{}}
	if o.Dir != "" {
		c.process.Env = append(os.Environ(), "ROOST_DIR="+o.Dir)
	}
	input, err := c.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := c.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.process.Start(); err != nil {
		return nil, &Error{Status: 69, Text: fmt.Sprintf("%s: %v: is Roost installed on this machine?", program, err)}
	}
	c.input = input
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, maxAnswer)
	var greeting struct {
		Protocol int `json:"protocol"`
	}
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &greeting) != nil || greeting.Protocol != protocol {
		c.process.Process.Kill()
		c.process.Wait()
		return nil, &Error{Status: 69, Text: fmt.Sprintf("%s api speaks protocol %d and this package %d: they are of "+
			"different releases", program, greeting.Protocol, protocol)}
	}
	go c.readAnswers(lines)
	return c, nil
}

// readAnswers gives answers to their calls until the process ends.
func (c *connection) readAnswers(lines *bufio.Scanner) {
	defer close(c.ended)
	for lines.Scan() {
		var a answer
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			continue
		}
		c.mutex.Lock()
		running := c.calls[a.ID]
		if a.Exit != nil {
			delete(c.calls, a.ID)
		}
		c.mutex.Unlock()
		switch {
		case running == nil:
		case a.Exit != nil:
			running.put(func() { running.done, running.status, running.text = true, *a.Exit, a.Error })
		case a.Text != nil:
			running.put(func() { running.parts = append(running.parts, []byte(*a.Text)) })
		default:
			running.put(func() { running.parts = append(running.parts, a.Bytes) })
		}
	}
	c.mutex.Lock()
	left := c.calls
	c.calls = nil
	c.mutex.Unlock()
	for _, running := range left {
		running.put(func() { running.done, running.status, running.text = true, 69, "roost api has ended" })
	}
	c.process.Wait()
}

var errEnded = errors.New("roost api has ended")

// start begins a command line. Its output must be read to its end.
func (c *connection) start(arguments []string, input string) (string, *call, error) {
	c.mutex.Lock()
	if c.calls == nil {
		c.mutex.Unlock()
		return "", nil, errEnded
	}
	c.next++
	id, running := strconv.Itoa(c.next), &call{ready: make(chan struct{}, 1)}
	c.calls[id] = running
	c.mutex.Unlock()
	dir, _ := os.Getwd() // without one, that of roost api
	if err := c.send(request{Version: 1, ID: id, Arguments: arguments, Input: input, Directory: dir}); err != nil {
		return id, running, nil // the end of the process ends the call
	}
	return id, running, nil
}

func (c *connection) send(r request) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	c.inputMutex.Lock()
	defer c.inputMutex.Unlock()
	_, err = c.input.Write(append(line, '\n'))
	return err
}

// run runs a command line and calls f for each part of its output. The end of ctx
// interrupts it.
func (c *connection) run(ctx context.Context, arguments []string, input string, f func([]byte) error) error {
	id, running, err := c.start(arguments, input)
	if err != nil {
		return err
	}
	var failed error
	stop := ctx.Done()
	for {
		select {
		case <-stop:
			stop, failed = nil, errors.Join(failed, ctx.Err())
			c.send(request{Version: 1, ID: id, Cancel: true}) // the end of the process ends the call, too
		case <-running.ready:
		}
		parts, done := running.take()
		for _, part := range parts {
			if failed == nil {
				failed = f(part)
			}
		}
		if done && failed == nil && running.status != 0 {
			failed = newError(running.status, running.text)
		}
		if done {
			return failed
		}
	}
}

func (c *connection) close() {
	c.inputMutex.Lock()
	c.input.Close()
	c.inputMutex.Unlock()
	<-c.ended
}
